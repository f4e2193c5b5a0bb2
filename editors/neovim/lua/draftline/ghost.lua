-- Draws a suggestion behind the cursor.

local M = { namespace = vim.api.nvim_create_namespace('draftline') }

function M.highlights()
  local function link(name, to)
    vim.api.nvim_set_hl(0, name, { link = to, default = true })
  end
  link('DraftlineGhost', vim.fn.hlexists('ComplHint') == 1 and 'ComplHint' or 'NonText')
  link('DraftlineHint', vim.fn.hlexists('ComplHintMore') == 1 and 'ComplHintMore' or 'MoreMsg')
  link('DraftlineReplaced', 'DiffDelete')
  link('DraftlineOld', 'DiffDelete')
  link('DraftlineNew', 'DiffAdd')
  link('DraftlineNewText', 'DiffText')
  link('DraftlineNote', 'WarningMsg')
end

-- Virtual text does not expand tabs.
local function expand(text, column, width)
  return (text:gsub('([^\t]*)\t', function(before)
    column = column + vim.fn.strdisplaywidth(before)
    local blanks = width - column % width
    column = column + blanks
    return before .. (' '):rep(blanks)
  end))
end

function M.clear(buf)
  if vim.api.nvim_buf_is_valid(buf) then
    vim.api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
  end
end

--- Shows text at a place; `replaced` bytes behind it would go; `hint` stands behind the text.
function M.show(buf, row, col, text, replaced, hint)
  M.clear(buf)
  local width = vim.bo[buf].tabstop
  local lines = vim.split(text, '\n', { plain = true })
  local before = (vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''):sub(1, col)
  local drawn = {}
  for at, line in ipairs(lines) do
    local column = at == 1 and vim.fn.strdisplaywidth(before) or 0
    drawn[at] = { { expand(line, column, width), 'DraftlineGhost' } }
  end
  if hint then
    table.insert(drawn[#drawn], { ' ' .. hint, 'DraftlineHint' })
  end
  vim.api.nvim_buf_set_extmark(buf, M.namespace, row, col, {
    virt_text = drawn[1],
    virt_text_pos = 'inline',
    virt_lines = #drawn > 1 and vim.list_slice(drawn, 2) or nil,
    hl_mode = 'combine',
  })
  if replaced > 0 then
    local options = { end_col = col + replaced, hl_group = 'DraftlineReplaced' }
    vim.api.nvim_buf_set_extmark(buf, M.namespace, row, col, options)
  end
end

--- What is drawn in a buffer, nil if nothing.
function M.shown(buf)
  local marks = vim.api.nvim_buf_get_extmarks(buf, M.namespace, 0, -1, { details = true, limit = 1 })
  return marks[1]
end

return M
