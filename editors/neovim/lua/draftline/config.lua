-- What a user can set, and what holds otherwise.

local M = {}

M.defaults = {
  -- The server's command as a list, e.g. { '/path/to/draftline', 'lsp' }. nil: see server_command.lua.
  cmd = nil,
  -- The server's settings, as in the README's table: { maxLines = 5, model = '…' }.
  settings = {},
  -- File types with a server; nil: all. Buffers without a file of their own never have one.
  filetypes = nil,
  disabled_filetypes = {},
  root_markers = { '.git' },
  -- The server's log; false leaves it to Neovim's own LSP log.
  log_file = vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'draftline.log'),
  log_level = 'warning',
  enabled = true,
  -- Ask while you type. Without it suggestions come by the keys `next` and `previous` only.
  automatic = true,
  -- 'own', or 'native' for vim.lsp.inline_completion (Neovim 0.12).
  backend = 'own',
  -- Keys that come within this time are asked for together. The server waits for the pace of your keys itself.
  debounce_ms = 10,
  -- No ghost text while a completion menu is open.
  hide_in_menu = true,
  -- false, or false for one of them, sets no mapping.
  keys = {
    accept = '<Tab>',
    accept_word = '<M-w>',
    accept_line = '<M-l>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
  },
  edit = {
    -- In normal mode, while the preview of an edit is open.
    accept = '<CR>',
    reject = '<Esc>',
  },
}

M.values = nil

local function check(values)
  local ok, err = pcall(function()
    for name, kind in pairs({
      settings = 'table',
      disabled_filetypes = 'table',
      root_markers = 'table',
      log_level = 'string',
      enabled = 'boolean',
      automatic = 'boolean',
      debounce_ms = 'number',
      hide_in_menu = 'boolean',
      edit = 'table',
    }) do
      if type(values[name]) ~= kind then
        error(('`%s` must be a %s, not %s'):format(name, kind, vim.inspect(values[name])), 0)
      end
    end
    local cmd = values.cmd
    if cmd ~= nil and not (type(cmd) == 'function' or (vim.islist(cmd) and type(cmd[1]) == 'string')) then
      error("`cmd` must be a list such as { 'draftline', 'lsp' }", 0)
    end
    if values.backend ~= 'own' and values.backend ~= 'native' then
      error("`backend` must be 'own' or 'native'", 0)
    end
    if values.keys ~= false and type(values.keys) ~= 'table' then
      error('`keys` must be a table or false', 0)
    end
    for name in pairs(values) do
      if M.defaults[name] == nil and name ~= 'cmd' and name ~= 'filetypes' then
        error(('there is no setting `%s`'):format(name), 0)
      end
    end
  end)
  return ok and nil or err
end

--- Takes the user's settings. A mistake is told, and the defaults hold.
function M.set(options)
  local values = vim.tbl_deep_extend('force', M.defaults, options or {})
  local problem = check(values)
  if problem then
    vim.notify('Draftline: ' .. problem .. '; the defaults are used.', vim.log.levels.ERROR)
    values = vim.deepcopy(M.defaults)
  end
  if values.backend == 'native' and not vim.lsp.inline_completion then
    vim.notify("Draftline: backend 'native' needs Neovim 0.12; 'own' is used.", vim.log.levels.WARN)
    values.backend = 'own'
  end
  M.values = values
  return values
end

function M.get()
  return M.values or M.defaults
end

return M
