-- Shows an edit before it is made: old lines marked, new ones as virtual lines below them.

local M = { namespace = vim.api.nvim_create_namespace('draftline.edit') }

function M.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
  end
end

-- A new line in pieces; `spans` are [line, start, stop] in characters.
local function chunks(line, at, spans)
  local found, done = {}, 0
  local length = vim.fn.strchars(line)
  local function add(from, to, group)
    if to > from then
      found[#found + 1] = { (vim.fn.strcharpart(line, from, to - from):gsub('\t', '    ')), group }
    end
  end
  for _, span in ipairs(spans or {}) do
    if span[1] == at - 1 then
      local from, to = math.max(span[2], done), math.min(span[3], length)
      add(done, from, 'DraftlineNew')
      add(from, to, 'DraftlineNewText')
      done = math.max(done, to)
    end
  end
  add(done, length, 'DraftlineNew')
  return #found > 0 and found or { { ' ', 'DraftlineNew' } }
end

local function mark(buf, line, options)
  line = math.max(0, math.min(line, vim.api.nvim_buf_line_count(buf) - 1))
  vim.api.nvim_buf_set_extmark(buf, M.namespace, line, 0, options)
end

local function show_hunk(buf, first, stop, lines, spans)
  for line = first, stop - 1 do
    mark(buf, line, { line_hl_group = 'DraftlineOld' })
  end
  if #lines == 0 then
    return
  end
  local drawn = {}
  for at, line in ipairs(lines) do
    drawn[at] = chunks(line, at, spans)
  end
  -- Below the line in front of the hunk's end; above the first line there is none.
  local above = stop == 0
  mark(buf, above and 0 or stop - 1, { virt_lines = drawn, virt_lines_above = above })
end

--- Draws the hunks so far, what is being written behind them, and a note at the selection's first line.
function M.show(buf, hunks, open, first_line, note)
  M.clear(buf)
  for _, hunk in ipairs(hunks) do
    show_hunk(buf, hunk.startLine, hunk.endLine, hunk.lines, hunk.spans)
  end
  if open and open ~= vim.NIL then
    show_hunk(buf, open.startLine, open.startLine, open.lines)
  end
  if note then
    mark(buf, first_line, { virt_text = { { ' ' .. note, 'DraftlineNote' } }, virt_text_pos = 'eol' })
  end
end

return M
