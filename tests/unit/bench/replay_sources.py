"""A small source of every language, with functions, blocks, comments and closures."""

from __future__ import annotations

PYTHON = '''"""A shelf."""

import functools
import json


class Shelf:
    """Keeps things by name."""

    def __init__(self, path: str) -> None:
        """Nothing is read yet."""
        # Filled by load.
        self.things: dict[str, int] = {}
        self.path = path  # where it lies

        self.changed = False

    def load(self) -> int:
        """Read the file."""
        with open(self.path, encoding="utf-8") as file:
            data = json.load(file)
            self.things.update(data)
        for name, count in self.things.items():
            if count < 0:
                print("negative", name)
                raise ValueError(name)
        return len(self.things)

    def largest(self, names: list[str]) -> str:
        try:
            best = max(
                names,
                key=self.things.__getitem__,
            )
        except KeyError as error:
            print(error)
            best = names[0]
        while best.endswith(" "):
            best = best[:-1]
            self.changed = True
        return best  # no blank at its end


def cached(function):
    @functools.wraps(function)
    def inner(*args):
        """The inside."""
        key = (function, args)
        return CACHE.setdefault(key, function(*args))

    return inner


CACHE: dict[object, object] = {}
'''

JAVASCRIPT = """'use strict'

import { open } from 'node:fs'

class Shelf {
  constructor (path) {
    this.path = path
    this.things = new Map()
  }

  load (data) {
    // everything that is not negative
    for (const [name, count] of Object.entries(data)) {
      if (count < 0) {
        console.log('negative', name)
        throw new Error(name)
      }
      this.things.set(name, count)
    }
    return this.things.size
  }
}

const largest = (shelf, names) => {
  let best = null
  names.forEach((name) => {
    const count = shelf.things.get(name)
    if (best === null || count > shelf.things.get(best)) {
      best = name
      shelf.changed = true
    }
  })
  return best
}

async function openShelf (path) {
  try {
    const file = await open(path)
    return new Shelf(file)
  } catch (error) {
    console.error(error)
    throw error
  }
}

export { Shelf, largest, openShelf }
"""

TYPESCRIPT = """import { open } from 'node:fs';

export interface Things {
    [name: string]: number;
}

export class Shelf<T extends Things> {
    private changed = false;

    constructor(private readonly things: T) {
        this.changed = Object.keys(things).length > 0;
        this.report('made');
    }

    /** Sum of everything. */
    total(): number {
        let sum = 0;
        for (const name of Object.keys(this.things)) {
            const count = this.things[name];
            sum += count;
        }
        return sum;
    }

    report(word: string): void {
        if (this.changed) {
            console.log(word, this.total());
            this.changed = false;
        } else {
            console.log(word);
            console.log('nothing changed');
        }
    }
}

export function lazily<T>(make: () => T): () => T {
    let value: T | undefined;
    return () => {
        if (value === undefined) {
            value = make();
        }
        return value;
    };
}
"""

TSX = """import React from 'react';

type Props = { names: string[]; onPick: (name: string) => void };

export function ShelfView({ names, onPick }: Props) {
  const [picked, setPicked] = React.useState<string | null>(null);
  const pick = (name: string) => {
    if (name !== picked) {
      setPicked(name);
      onPick(name);
    }
  };
  return (
    <ul>
      {names.map((name) => (
        <li key={name} onClick={() => pick(name)}>
          {name}
        </li>
      ))}
    </ul>
  );
}

export function Total({ counts }: { counts: number[] }) {
  let total = 0;
  for (const count of counts) {
    total += count;
    console.log('so far', total);
  }
  return <b>{total}</b>;
}
"""

GO = """package shelf

import "errors"

// Shelf keeps things by name.
type Shelf struct {
\tthings map[string]int
\tchanged bool
}

// Add puts one thing in.
func (s *Shelf) Add(name string, count int) error {
\tif count < 0 {
\t\ts.changed = true
\t\treturn errors.New("negative: " + name)
\t}
\ts.things[name] += count
\treturn nil
}

func Largest(s *Shelf) (best string) {
\tfor name, count := range s.things {
\t\tif best == "" || count > s.things[best] {
\t\t\tbest = name
\t\t\ts.changed = true
\t\t}
\t}
\treturn best
}

func Each(s *Shelf, visit func(string)) {
\tnames := make([]string, 0, len(s.things))
\tfor name := range s.things {
\t\tnames = append(names, name)
\t\tvisit(name)
\t}
\tdefer func() {
\t\ts.changed = false
\t\tprintln("visited", len(names))
\t}()
}
"""

RUST = """use std::collections::HashMap;

/// Keeps things by name.
pub struct Shelf {
    things: HashMap<String, i64>,
}

impl Shelf {
    pub fn add(&mut self, name: &str, count: i64) -> Result<(), String> {
        if count < 0 {
            let message = format!("negative: {}", name);
            return Err(message);
        }
        *self.things.entry(name.to_string()).or_insert(0) += count;
        Ok(())
    }

    pub fn largest(&self) -> Option<String> {
        let mut best: Option<(&String, &i64)> = None;
        for (name, count) in &self.things {
            // ties keep the first
            if best.map_or(true, |(_, most)| count > most) {
                best = Some((name, count));
            }
        }
        best.map(|(name, _)| name.clone())
    }
}

pub fn drain(shelf: &mut Shelf) -> i64 {
    let mut sum = 0;
    while let Some(name) = shelf.largest() {
        sum += shelf.things.remove(&name).unwrap_or(0);
        println!("took {}", name);
    }
    sum
}
"""

JAVA = """package shelf;

import java.util.HashMap;
import java.util.Map;

/** Keeps things by name. */
public class Shelf {
    private final Map<String, Integer> things = new HashMap<>();
    private boolean changed;

    public Shelf(Map<String, Integer> start) {
        things.putAll(start);
        changed = !start.isEmpty();
    }

    public void add(String name, int count) {
        if (count < 0) {
            changed = true;
            throw new IllegalArgumentException(name);
        }
        things.merge(name, count, Integer::sum);
    }

    public String largest() {
        String best = null;
        for (Map.Entry<String, Integer> entry : things.entrySet()) {
            if (best == null || entry.getValue() > things.get(best)) {
                best = entry.getKey();
                changed = true;
            }
        }
        return best;
    }

    public int size() {
        try {
            int size = things.size();
            return size;
        } finally {
            changed = false;
            System.out.println("counted");
        }
    }
}
"""

C = """#include <stdio.h>
#include <stdlib.h>

struct shelf {
    int *counts;
    size_t size;
};

/* Room for size things. */
int shelf_make(struct shelf *shelf, size_t size)
{
    shelf->counts = calloc(size, sizeof *shelf->counts);
    if (!shelf->counts) {
        fprintf(stderr, "no room for %zu\\n", size);
        return -1;
    }
    shelf->size = size;
    return 0;
}

size_t shelf_largest(const struct shelf *shelf)
{
    size_t best = 0;
    for (size_t i = 1; i < shelf->size; i++) {
        int more = shelf->counts[i] > shelf->counts[best];
        best = more ? i : best;
    }
    return best;
}

void shelf_free(struct shelf *shelf)
{
    free(shelf->counts);
    shelf->counts = NULL;
#ifdef LOUD
    puts("freed");
#endif
    shelf->size = 0;
}
"""

CPP = """#include <map>
#include <stdexcept>
#include <string>

namespace shelf {

template <typename T>
class Shelf {
public:
    void add(const std::string &name, T count) {
        if (count < T{}) {
            changed_ = true;
            throw std::invalid_argument(name);
        }
        things_[name] += count;
    }

    std::string largest() const {
        std::string best;
        for (const auto &[name, count] : things_) {
            if (best.empty() || count > things_.at(best)) {
                best = name;
            }
        }
        return best;
    }

private:
    std::map<std::string, T> things_;
    bool changed_ = false;
};

template <typename T>
T total(const Shelf<T> &shelf) {
    T sum{};
    auto visit = [&](const std::string &name) {
        sum += shelf.at(name);
        return sum;
    };
    while (!shelf.empty()) {
        visit(shelf.largest());
        shelf.pop();
    }
    return sum;
}

}  // namespace shelf
"""

# File name -> LSP language identifier and text.
SOURCES: dict[str, tuple[str, str]] = {
    "shelf.py": ("python", PYTHON),
    "shelf.js": ("javascript", JAVASCRIPT),
    "shelf.jsx": ("javascriptreact", JAVASCRIPT),
    "shelf.ts": ("typescript", TYPESCRIPT),
    "shelf.tsx": ("typescriptreact", TSX),
    "shelf.go": ("go", GO),
    "shelf.rs": ("rust", RUST),
    "Shelf.java": ("java", JAVA),
    "shelf.c": ("c", C),
    "shelf.cpp": ("cpp", CPP),
}
