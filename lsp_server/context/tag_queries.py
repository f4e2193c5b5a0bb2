"""Tree-sitter queries for definitions, by LSP language identifier.

``@name`` is the defined name. The whole is ``@definition`` (shown up to its body), ``@class`` (the same; has
members) or ``@type`` (shown with its first lines, as the fields are what one wants to know).
"""

from __future__ import annotations

_PYTHON = """
(function_definition name: (identifier) @name) @definition
(class_definition name: (identifier) @name) @class
(module (expression_statement (assignment left: (identifier) @name) @definition))
"""

_SCRIPT = """
(function_declaration name: (identifier) @name) @definition
(generator_function_declaration name: (identifier) @name) @definition
(method_definition name: (property_identifier) @name) @definition
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition))
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition))
"""

_JAVASCRIPT = _SCRIPT + "(class_declaration name: (identifier) @name) @class"

_TYPESCRIPT = (
    _SCRIPT
    + """
(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @type
(type_alias_declaration name: (type_identifier) @name) @type
(enum_declaration name: (identifier) @name) @type
(function_signature name: (identifier) @name) @definition
(method_signature name: (property_identifier) @name) @definition
(abstract_method_signature name: (property_identifier) @name) @definition
"""
)

_GO = """
(function_declaration name: (identifier) @name) @definition
(method_declaration name: (field_identifier) @name) @definition
(type_declaration (type_spec name: (type_identifier) @name) @type)
(const_spec name: (identifier) @name) @definition
(source_file (var_declaration (var_spec name: (identifier) @name) @definition))
"""

_RUST = """
(function_item name: (identifier) @name) @definition
(function_signature_item name: (identifier) @name) @definition
(struct_item name: (type_identifier) @name) @type
(enum_item name: (type_identifier) @name) @type
(trait_item name: (type_identifier) @name) @class
(type_item name: (type_identifier) @name) @type
(const_item name: (identifier) @name) @definition
(static_item name: (identifier) @name) @definition
(macro_definition name: (identifier) @name) @definition
"""

_JAVA = """
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @definition
(constructor_declaration name: (identifier) @name) @definition
"""

_C = """
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition
(function_definition
  declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name))) @definition
(declaration declarator: (function_declarator declarator: (identifier) @name)) @definition
(declaration
  declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name))) @definition
(struct_specifier name: (type_identifier) @name body: (_)) @type
(enum_specifier name: (type_identifier) @name body: (_)) @type
(type_definition declarator: (type_identifier) @name) @type
(preproc_def name: (identifier) @name) @definition
(preproc_function_def name: (identifier) @name) @definition
"""

_CPP = (
    _C
    + """
(class_specifier name: (type_identifier) @name body: (_)) @class
(function_definition declarator: (function_declarator declarator: (field_identifier) @name)) @definition
(function_definition
  declarator: (function_declarator declarator: (qualified_identifier name: (identifier) @name))) @definition
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @definition
(alias_declaration name: (type_identifier) @name) @type
"""
)

_CSHARP = """
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(struct_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @type
(method_declaration name: (identifier) @name) @definition
(constructor_declaration name: (identifier) @name) @definition
(property_declaration name: (identifier) @name) @definition
"""

_RUBY = """
(method name: (_) @name) @definition
(singleton_method name: (_) @name) @definition
(class name: (constant) @name) @class
(module name: (constant) @name) @class
"""

_PHP = """
(class_declaration name: (name) @name) @class
(interface_declaration name: (name) @name) @class
(trait_declaration name: (name) @name) @class
(enum_declaration name: (name) @name) @type
(function_definition name: (name) @name) @definition
(method_declaration name: (name) @name) @definition
"""

QUERIES = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "typescriptreact": _TYPESCRIPT,
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
    "csharp": _CSHARP,
    "ruby": _RUBY,
    "php": _PHP,
}
