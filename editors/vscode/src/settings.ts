/** Which settings are the server's. */

/** Keys of the section `draftline` that only the extension reads. */
export const OWN_KEYS = ['path', 'pythonPath', 'installFrom', 'uvPath'];

/** What the server is told of a configuration; null for a key keeps its own default. */
export function forServer(values: unknown): unknown {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    return values;
  }
  return Object.fromEntries(Object.entries(values).filter(([key]) => !OWN_KEYS.includes(key)));
}

/** A list with `name` in it if it was not, and without it if it was. */
export function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((other) => other !== name) : [...names, name];
}
