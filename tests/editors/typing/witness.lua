-- Sees what Neovim paints, and compares it with the buffer and with the server's answers.

local M = { painted = 0, requests = 0, suggestions = 0, stale = {}, trouble = {} }

local answers = {}

-- The document in front of a place (row and byte from 0) and behind it.
local function around(lines, row, col)
  local before, after = vim.list_slice(lines, 1, row + 1), vim.list_slice(lines, row + 1)
  before[row + 1] = before[row + 1]:sub(1, col)
  after[1] = after[1]:sub(col + 1)
  return table.concat(before, '\n'), table.concat(after, '\n')
end

local function remember(lines, items)
  for _, item in ipairs(items) do
    local from, to = item.range.start, item.range['end']
    local before = around(lines, from.line, from.character)
    local _, after = around(lines, to.line, to.character)
    M.suggestions = M.suggestions + 1
    table.insert(answers, { before .. item.insertText, after })
  end
end

local function check(win, buf)
  local text, row, col = _G.ghost()
  if not text or buf ~= vim.api.nvim_get_current_buf() then
    return
  end
  M.painted = M.painted + 1
  local cursor = vim.api.nvim_win_get_cursor(win)
  local before, after = around(vim.api.nvim_buf_get_lines(buf, 0, -1, false), row, col)
  if row == cursor[1] - 1 and col == cursor[2] then
    for at = #answers, 1, -1 do
      if answers[at][1] == before .. text and answers[at][2] == after then
        return
      end
    end
  end
  table.insert(M.stale, ('%q behind %q'):format(text, before:sub(-40)))
end

--- From now on, for the running client; the documents are ASCII.
function M.watch()
  local client = require('draftline.server').client()
  local request = client.request
  client.request = function(self, method, params, handler, ...)
    if method ~= 'textDocument/inlineCompletion' then
      return request(self, method, params, handler, ...)
    end
    M.requests = M.requests + 1
    local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
    return request(self, method, params, function(err, result, ...)
      if not err and type(result) == 'table' then
        remember(lines, result.items or result)
      end
      return handler(err, result, ...)
    end, ...)
  end
  -- Called at each redraw with the state that is about to be painted.
  vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace('witness'), {
    on_win = function(_, win, buf)
      local ok, problem = pcall(check, win, buf)
      if not ok then
        table.insert(M.trouble, problem)
      end
    end,
  })
end

return M
