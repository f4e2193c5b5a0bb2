// Evaluated in VS Code's page. Defines window.draftline: what the editor shows, and a record of keys and frames.
() => {
  const plain = (text) => text.replace(/\u00a0/g, ' ').replace(/[\u200b-\u200d]/g, '');
  const all = (root, selector) => [...root.querySelectorAll(selector)];

  // Behind a suggestion of several lines the rest of the document's line is hidden; it is drawn behind the last one.
  const HIDDEN = '.ghost-text-hidden';
  const GHOST = `[class*="ghost-text"]:not(${HIDDEN})`;
  const without = (node, selector) => {
    if (node.querySelector(selector) === null) {
      return plain(node.textContent);
    }
    const copy = node.cloneNode(true);
    for (const part of all(copy, selector)) {
      part.remove();
    }
    return plain(copy.textContent);
  };

  // Lines of the document as they are drawn: `text` is the document's own, `drawn` has the suggestion in it.
  // `below` are the lines of the suggestion that stand between those of the document.
  const look = () => {
    const editor = document.querySelector('.editor-instance .monaco-editor');
    if (editor === null) {
      return null;
    }
    const ofSuggestion = (node) => node.closest('.suggest-preview-text') !== null;
    const top = (node) => Number.parseFloat(node.style.top);
    const lines = all(editor, '.view-lines .view-line')
      .filter((node) => !ofSuggestion(node))
      .sort((one, other) => top(one) - top(other))
      .map((node) => ({ text: without(node, GHOST), drawn: without(node, HIDDEN) }));
    const below = all(editor, '.suggest-preview-text .view-line').map((node) => plain(node.textContent));
    return { lines, below };
  };

  const watch = () => {
    const record = { keys: [], frames: [] };
    let last = '';
    window.addEventListener('keydown', (event) => record.keys.push({ at: event.timeStamp, key: event.key }), true);
    // The editor draws in callbacks of the frame that come after ours, so the look is taken behind all of them: the
    // observer of a size that changes in every frame is called when the frame is laid out and not yet painted.
    const probe = document.body.appendChild(document.createElement('div'));
    probe.style.cssText = 'position: fixed; height: 1px; opacity: 0; pointer-events: none';
    let wide = false;
    const frame = () => {
      wide = !wide;
      probe.style.width = wide ? '2px' : '1px';
      requestAnimationFrame(frame);
    };
    new ResizeObserver(() => {
      const seen = look();
      const now = JSON.stringify(seen);
      if (now !== last) {
        last = now;
        record.frames.push({ at: performance.now(), ...seen });
      }
    }).observe(probe);
    requestAnimationFrame(frame);
    return record;
  };

  window.draftline = { look, start: () => void (window.draftline.record = watch()) };
}
