-- Draftline for Neovim. `require('draftline').setup{}` is all it needs; see :help draftline.

local config = require('draftline.config')
local state = require('draftline.state')

local M = {}

local function backend()
  return require(config.get().backend == 'native' and 'draftline.native' or 'draftline.suggest')
end

--- Starts the server for files and sets the mappings.
---@param options? table see draftline.config
function M.setup(options)
  local server = require('draftline.server')
  local ghost = require('draftline.ghost')
  local earlier = config.values
  if earlier then
    backend().abort()
  end
  local values = config.set(options)
  state.enabled = values.enabled
  ghost.highlights()
  local group = vim.api.nvim_create_augroup('draftline', { clear = true })
  vim.api.nvim_create_autocmd('ColorScheme', { group = group, callback = ghost.highlights })
  vim.api.nvim_create_autocmd({ 'FileType', 'BufReadPost', 'BufNewFile', 'BufEnter' }, {
    group = group,
    callback = function(event)
      -- Behind what else happens at opening a file, so that file type and buffer type are known.
      vim.schedule(function()
        if vim.api.nvim_buf_is_valid(event.buf) then
          server.attach(event.buf)
        end
      end)
    end,
  })
  server.on_ready = backend().ready
  server.on_end = function()
    backend().abort()
    require('draftline.edit').server_ended()
  end
  server.on_attach = function(client, buf)
    if config.get().backend == 'own' and vim.lsp.inline_completion then
      -- Switched on for all servers it would show each suggestion a second time.
      vim.lsp.inline_completion.enable(false, { client_id = client.id })
    end
    backend().attached(client, buf)
  end
  backend().start(group)
  require('draftline.keys').set(values.keys or {})
  local client = server.client()
  if client and earlier then
    -- A second setup() while the server runs.
    for buf in pairs(client.attached_buffers) do
      server.on_attach(client, buf)
    end
    if not vim.deep_equal(earlier.settings, values.settings) then
      server.push()
    end
  end
  if vim.v.vim_did_enter == 1 then
    server.attach_all()
  end
end

--- Inserts the suggestion; false if there is none. The same for a word and a line of it.
function M.accept()
  return backend().take('all')
end

function M.accept_word()
  return backend().take('word')
end

function M.accept_line()
  return backend().take('line')
end

--- Shows another suggestion, or asks for some.
function M.next()
  backend().cycle(1)
end

function M.previous()
  backend().cycle(-1)
end

--- Takes the suggestion off the screen.
function M.dismiss()
  return backend().dismiss()
end

--- Whether a suggestion is on screen, for mappings of one's own.
function M.visible()
  return config.values ~= nil and backend().visible()
end

--- Whether suggestions are switched on for a buffer.
function M.active(buf)
  return config.values ~= nil and backend().active(buf or vim.api.nvim_get_current_buf())
end

function M.enable(on)
  state.update({ enabled = on ~= false })
  backend().switched()
end

function M.disable()
  M.enable(false)
end

function M.toggle()
  M.enable(not state.enabled)
end

--- Changes one of the server's settings while it runs, e.g. set('maxLines', 3); nil for its default.
function M.set(key, value)
  assert(config.values, 'call setup() first')
  require('draftline.server').set(key, value)
end

function M.restart()
  backend().abort()
  require('draftline.server').restart()
end

--- Changes lines of the current buffer as an instruction says, after a preview.
---@param instruction string
---@param first integer first line, from 1
---@param last integer last line
function M.edit(instruction, first, last)
  require('draftline.edit').start(instruction, first, last)
end

function M.accept_edit()
  return require('draftline.edit').accept()
end

function M.reject_edit()
  return require('draftline.edit').reject()
end

--- For the status line: `%{v:lua.require'draftline'.status()}`.
function M.status()
  return state.text()
end

--- The same in parts: kind (off, error, loading, busy, ready), percentage, message, reason, next_step.
function M.status_info()
  return {
    kind = state.kind(),
    percentage = state.percentage,
    message = state.message,
    reason = state.reason,
    next_step = state.next_step,
  }
end

return M
