"""A small file in each language: a class with a documented method, and what it imports."""

from __future__ import annotations

import pytest
from tree_sitter import Language, Parser

from lsp_server.documents import syntax

# Languages whose grammar another part of the server may not know.
_GRAMMARS = {
    "csharp": ("tree_sitter_c_sharp", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
}


def know_grammar(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    """Let the server have the grammar of a language; skips where it is not installed."""
    if language in _GRAMMARS and syntax.parser_for(language) is None:
        package, function = _GRAMMARS[language]
        grammar = getattr(pytest.importorskip(package), function)
        monkeypatch.setitem(syntax._parsers, language, Parser(Language(grammar())))


SAMPLES: dict[str, str] = {}
SAMPLES["python"] = '''import os
from a import (
    b,
    c,
)

LIMIT = 3


class Store(Base):
    """Keeps things.

    More.
    """

    @property
    def size(self) -> int:
        return 1

    def put(
        self,
        key: str,
    ) -> None:
        # here
        self.x = key
        return


def free(a, b=1):
    return a
'''
SAMPLES["javascript"] = """import x from "x";
const fs = require("fs");

/**
 * Adds two.
 */
export function add(a, b) {
  return a + b;
}

export const twice = (a) => {
  return 2 * a;
};

class Store extends Base {
  constructor(root) {
    super(root);
  }

  put(key, value) {
    this.x = key;
    return value;
  }
}
"""
SAMPLES["typescript"] = """import { x } from "x";
import type { Y } from "y";

export interface Shape {
  area: number;
  name: string;
}

export type Key = string | number;

// What is asked.
export abstract class Store<T> extends Base<T> {
  constructor(private root: string) {
    super(root);
  }

  async put(key: Key, value: T): Promise<void> {
    this.x = key;
    return;
  }

  abstract get(key: Key): T;
}
"""
SAMPLES["go"] = """package store

import (
	"fmt"
	"os"
)

// Limit is the most.
const Limit = 3

// Store keeps things.
type Store struct {
	root string
	size int
}

// Put stores a value.
func (s *Store) Put(key string, value int) error {
	fmt.Println(key)
	return nil
}

func New(root string) *Store {
	return &Store{root: root}
}
"""
SAMPLES["rust"] = """use std::fs;
use crate::other::{A, B};

/// Keeps things.
pub struct Store<T> {
    root: String,
    items: Vec<T>,
}

impl<T> Store<T> {
    /// Makes one.
    pub fn new(root: String) -> Self {
        Store { root, items: vec![] }
    }

    pub fn put(&mut self, item: T) {
        self.items.push(item);
        return;
    }
}

pub trait Shape {
    fn area(&self) -> f64;
}
"""
SAMPLES["java"] = """package a.b;

import java.util.List;

/** Keeps things. */
public class Store extends Base {
    private int size;

    public Store(String root) {
        super(root);
    }

    /**
     * Puts.
     */
    public void put(String key, int value) {
        this.size = value;
        return;
    }
}
"""
SAMPLES["c"] = """#include <stdio.h>
#include "store.h"

#define LIMIT 3

/* Keeps things. */
struct store {
    char *root;
    int size;
};

typedef struct { int x; int y; } point_t;

// Puts a value.
static int store_put(struct store *s, const char *key)
{
    s->size = 1;
    return 0;
}

char *store_root(struct store *s);
"""
SAMPLES["cpp"] = """#include <vector>
using std::vector;

namespace outer {

/// Keeps things.
template <typename T>
class Store : public Base {
public:
    explicit Store(int n);
    void put(const T &value) {
        items.push_back(value);
        return;
    }
private:
    vector<T> items;
};

int free_function(int a) {
    return a;
}

}  // namespace outer
"""
SAMPLES["csharp"] = """using System;
using System.Linq;

namespace A.B
{
    /// <summary>
    /// Keeps things.
    /// </summary>
    public class Store : Base
    {
        public int Size { get; set; }

        public Store(string root)
        {
            Root = root;
        }

        public void Put(string key, int value)
        {
            Size = value;
            return;
        }
    }
}
"""
SAMPLES["ruby"] = """require "set"
require_relative "other"

module Outer
  # Keeps things.
  class Store < Base
    def initialize(root)
      @root = root
    end

    # Puts.
    def put(key, value)
      @size = value
      nil
    end

    def self.open(root)
      new(root)
    end
  end
end
"""
SAMPLES["php"] = """<?php
namespace A;

use B\\C;
use D\\E;

/** Keeps things. */
class Store extends Base
{
    public function __construct(string $root)
    {
        $this->root = $root;
    }

    /** Puts. */
    public function put(string $key, int $value): void
    {
        $this->size = $value;
        return;
    }
}

function free_function(int $a): int {
    return $a;
}
"""
