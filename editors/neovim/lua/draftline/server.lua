-- The LSP client: one server for all buffers, because a server holds a model in memory.

local compat = require('draftline.compat')
local config = require('draftline.config')
local server_command = require('draftline.server_command')
local state = require('draftline.state')

local M = {
  id = nil,
  on_ready = function() end,
  on_attach = function() end,
  on_end = function() end,
  progress = {},
}

-- A server that ends by itself is started again, but not more often than this: it might end every time.
local RESTARTS, WITHIN_SECONDS = 3, 180

local restarting = false
local told = false
local greeted ---@type integer?  the client whose server answered `initialize`
local ends = {} -- when it ended by itself, in seconds

--- The running client, nil if there is none.
function M.client()
  local client = M.id and vim.lsp.get_client_by_id(M.id)
  if client and not compat.call(client, 'is_stopped') then
    return client
  end
end

--- The client, if it follows a buffer and is past `initialize`.
function M.client_of(buf)
  local client = M.client()
  if client and client.initialized and vim.lsp.buf_is_attached(buf, client.id) then
    return client
  end
end

--- Whether a buffer gets a server at all.
function M.wanted(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= '' then
    return false
  end
  local values, filetype = config.get(), vim.bo[buf].filetype
  if vim.tbl_contains(values.disabled_filetypes, filetype) then
    return false
  end
  return values.filetypes == nil or vim.tbl_contains(values.filetypes, filetype)
end

local function folder(root)
  return { uri = vim.uri_from_fname(root), name = root }
end

-- The server keeps the documents of different folders apart; a second process would hold the model again.
local function add_folder(client, root)
  local known = client.workspace_folders or {}
  for _, one in ipairs(known) do
    if one.name == root then
      return
    end
  end
  client.workspace_folders = vim.list_extend(known, { folder(root) })
  local event = { added = { folder(root) }, removed = {} }
  compat.call(client, 'notify', 'workspace/didChangeWorkspaceFolders', { event = event })
end

local function on_progress(err, params, ctx)
  local listener = M.progress[params.token]
  if listener then
    listener(params.value)
    return
  end
  local value = params.value
  if tostring(params.token):find('^draftline%-load') and value.kind ~= 'end' and type(value.percentage) == 'number' then
    state.update({ percentage = value.percentage })
  end
  return vim.lsp.handlers['$/progress'](err, params, ctx)
end

local function on_status(_, params)
  if state.from_status(params) then
    M.on_ready()
  end
end

local function worth_another_try()
  local now = vim.uv.hrtime() / 1e9
  ends = vim.tbl_filter(function(at)
    return now - at < WITHIN_SECONDS
  end, ends)
  ends[#ends + 1] = now
  return #ends <= RESTARTS
end

local function ended(code, signal, worked)
  M.on_end()
  -- SIGTERM is how Neovim ends a server at a user's wish.
  if (code == 0 and signal == 0) or signal == 15 or code == 143 then
    state.update({ server = 'stopped', message = '', reason = '', next_step = '' })
    return
  end
  local message = 'the server ended with ' .. (signal ~= 0 and 'signal ' .. signal or 'status ' .. code) .. '.'
  -- One that never answered `initialize` would not do so the next time either.
  if worked and worth_another_try() then
    vim.notify('Draftline: ' .. message .. ' It is started again; `:Draftline log` may say why.', vim.log.levels.WARN)
    M.attach_all()
    return
  end
  local next_step = '`:Draftline log` may say why; `:Draftline restart` starts it again.'
  state.update({ server = 'failed', message = message, next_step = next_step })
  vim.notify('Draftline: ' .. message .. ' ' .. next_step, vim.log.levels.ERROR)
end

local function on_exit(code, signal, id)
  if id ~= M.id then
    return
  end
  local worked = greeted == id
  M.id = nil
  state.waiting = {}
  vim.schedule(function()
    if vim.v.exiting ~= vim.NIL then
      return
    elseif restarting then
      restarting = false
      M.on_end()
      M.attach_all()
    else
      ended(code, signal, worked)
    end
  end)
end

local function options(cmd, root)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  -- Neovim announces it by itself since 0.12 only.
  capabilities.textDocument.inlineCompletion = capabilities.textDocument.inlineCompletion
    or { dynamicRegistration = false }
  local values = config.get()
  return {
    name = 'draftline',
    cmd = cmd,
    root_dir = root,
    workspace_folders = root and { folder(root) } or nil,
    capabilities = capabilities,
    settings = { draftline = values.settings },
    init_options = vim.tbl_isempty(values.settings) and vim.empty_dict() or values.settings,
    handlers = { ['draftline/status'] = on_status, ['$/progress'] = on_progress },
    on_init = function(client)
      greeted = client.id
    end,
    on_attach = function(client, buf)
      M.on_attach(client, buf)
    end,
    on_exit = on_exit,
  }
end

--- Lets the server follow a buffer, and starts it if need be.
function M.attach(buf)
  if not config.values or not M.wanted(buf) then
    return
  end
  local root = vim.fs.root(buf, config.get().root_markers)
  local client = M.client()
  if client then
    if not vim.lsp.buf_is_attached(buf, client.id) then
      if root then
        add_folder(client, root)
      end
      vim.lsp.buf_attach_client(buf, client.id)
    end
    return
  end
  local cmd, from = server_command.find()
  if not cmd then
    state.update({ server = 'failed', message = from, next_step = server_command.advice, reason = 'no-server' })
    if not told then
      told = true
      vim.notify('Draftline: ' .. from .. ' ' .. server_command.advice, vim.log.levels.WARN)
    end
    return
  end
  state.update({ server = 'starting', message = '', reason = '', next_step = '' })
  M.id = vim.lsp.start(options(cmd, root), {
    bufnr = buf,
    reuse_client = function()
      return false
    end,
  })
  if not M.id then
    state.update({ server = 'failed', message = 'the server could not be started.', next_step = '`:LspLog`' })
  end
end

function M.attach_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    M.attach(buf)
  end
end

--- Ends the server and starts it again, which also takes over a changed command.
function M.restart()
  told, ends = false, {}
  local client = M.client()
  if not client then
    M.attach_all()
    return
  end
  restarting = true
  compat.call(client, 'stop')
  -- A server that does not end by itself is not waited for longer than this.
  vim.defer_fn(function()
    if restarting and vim.lsp.get_client_by_id(client.id) then
      compat.call(client, 'stop', true)
    end
  end, 3000)
end

--- Changes one of the server's settings while it runs; nil for its default.
function M.set(key, value)
  config.get().settings[key] = value
  M.push()
end

--- Tells the running server the settings as they are now.
function M.push()
  local client = M.client()
  if client then
    client.config.settings = { draftline = config.get().settings }
    client.settings = client.config.settings
    compat.call(client, 'notify', 'workspace/didChangeConfiguration', { settings = client.config.settings })
  end
end

return M
