-- Parts of a suggestion. Pure functions of text.

local M = {}

-- As the server counts words: blanks, then a name or a run of other signs.
local WORD = [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]]

--- What 'all', 'word' or 'line' takes of the text.
function M.take(text, amount)
  if amount == 'word' then
    local word = vim.fn.matchstr(text, WORD)
    return word ~= '' and word or text
  elseif amount == 'line' then
    -- A text that begins with a line end has nothing on this line: take the next one with it.
    return text:match('^\n*[^\n]+') or text
  end
  return text
end

return M
