-- The same by vim.lsp.inline_completion (Neovim 0.12): it asks and draws.
--
-- Accepting goes through here, because Neovim inserts the whole item where it was asked for, also behind what was
-- typed along since.

local compat = require('draftline.compat')
local pieces = require('draftline.pieces')
local server = require('draftline.server')
local state = require('draftline.state')

local M = {}

function M.active(buf)
  return state.enabled and vim.b[buf].draftline ~= false
end

local function enable(on)
  local client = server.client()
  if client then
    vim.lsp.inline_completion.enable(on, { client_id = client.id })
  end
end

function M.start() end
function M.ready() end
function M.refresh() end

function M.attached(client)
  vim.lsp.inline_completion.enable(state.enabled, { client_id = client.id })
end

function M.switched()
  enable(state.enabled)
end

function M.visible()
  local namespace = vim.api.nvim_create_namespace('nvim.lsp.inline_completion')
  local buf = vim.api.nvim_get_current_buf()
  return vim.fn.pumvisible() == 0
    and M.active(buf)
    and #vim.api.nvim_buf_get_extmarks(buf, namespace, 0, -1, { limit = 1 }) > 0
end

-- What is left of an item at the cursor; nil if something else was typed.
local function left(item)
  local cursor = vim.api.nvim_win_get_cursor(0)
  local text = item.insert_text
  if type(text) ~= 'string' or not item.range then
    return nil
  end
  local row, col = item.range:to_extmark()
  if row > cursor[1] - 1 or (row == cursor[1] - 1 and col > cursor[2]) then
    return nil
  end
  local there = table.concat(vim.api.nvim_buf_get_text(0, row, col, cursor[1] - 1, cursor[2], {}), '\n')
  if text:sub(1, #there) ~= there then
    return nil
  end
  return text:sub(#there + 1)
end

function M.take(amount)
  return vim.lsp.inline_completion.get({
    on_accept = function(item)
      local text = left(item)
      if not text or text == '' then
        return nil
      end
      local piece = pieces.take(text, amount)
      local lines = vim.split(piece, '\n', { plain = true })
      local cursor = vim.api.nvim_win_get_cursor(0)
      local row, col = cursor[1] - 1, cursor[2]
      vim.api.nvim_buf_set_text(0, row, col, row, col, lines)
      vim.api.nvim_win_set_cursor(0, { row + #lines, #lines == 1 and col + #piece or #lines[#lines] })
      local client = vim.lsp.get_client_by_id(item.client_id)
      if client and piece == text and item.command then
        compat.execute(client, item.command, vim.api.nvim_get_current_buf())
      end
      return nil
    end,
  })
end

function M.cycle(step)
  vim.lsp.inline_completion.select({ count = step })
end

function M.dismiss()
  -- It has no way to hide; accepting nothing does.
  return vim.lsp.inline_completion.get({
    on_accept = function()
      return nil
    end,
  })
end

M.abort = M.dismiss

return M
