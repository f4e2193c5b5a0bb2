-- One request: where it was asked, and what is left of its answer where the cursor is now.
--
-- Rows and columns count from 0; columns are bytes.

local compat = require('draftline.compat')

local Session = {}
Session.__index = Session

--- A request at a place of a buffer.
function Session.new(buf, row, col)
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ''
  return setmetatable({
    buf = buf,
    row = row,
    col = col,
    line = line,
    -- The last row of what was typed since; follows every change of the buffer.
    end_row = row,
    broken = false,
    items = {},
    index = 1,
  }, Session)
end

--- Takes the answer over; items that cannot be shown at the cursor are dropped.
function Session:answer(items, encoding)
  for _, item in ipairs(items) do
    local text = item.insertText
    if type(text) == 'table' then
      text = text.value
    end
    local from, to = self.col, self.col
    if item.range and item.range ~= vim.NIL then
      local start, stop = item.range.start, item.range['end']
      if start.line ~= self.row or stop.line ~= self.row then
        text = nil
      else
        from = compat.to_bytes(self.line, start.character, encoding)
        to = compat.to_bytes(self.line, stop.character, encoding)
      end
    end
    if type(text) == 'string' and text ~= '' and from <= self.col and to >= self.col then
      text = text:gsub('\r\n?', '\n')
      local command = item.command ~= vim.NIL and item.command or nil
      self.items[#self.items + 1] = { text = text, from = from, to = to, command = command }
    end
  end
end

--- Follows a change of lines; anything but typing on from the place breaks the session.
function Session:changed(first, last_old, last_new)
  if first < self.row or last_old > self.end_row + 1 then
    self.broken = true
    return
  end
  self.end_row = self.end_row + last_new - last_old
  if self.end_row < self.row then
    self.broken = true
  end
end

--- What of an item is still to be inserted at the cursor, and how many bytes behind it are replaced.
--- nil if the buffer holds something else than the item says.
function Session:left(item, row, col)
  if self.broken or row ~= self.end_row then
    return nil
  end
  local lines = vim.api.nvim_buf_get_lines(self.buf, self.row, row + 1, false)
  local first, last = lines[1], lines[#lines]
  if not first or first:sub(1, self.col) ~= self.line:sub(1, self.col) then
    return nil
  end
  if last:sub(col + 1) ~= self.line:sub(self.col + 1) or (#lines == 1 and col < self.col) then
    return nil
  end
  lines[#lines] = last:sub(1, col)
  lines[1] = lines[1]:sub(item.from + 1)
  local there = table.concat(lines, '\n')
  if #there >= #item.text or item.text:sub(1, #there) ~= there then
    return nil
  end
  return item.text:sub(#there + 1), item.to - self.col
end

--- The chosen item's rest, or that of the next one that still fits.
function Session:current(row, col)
  for step = 0, #self.items - 1 do
    local at = (self.index + step - 1) % #self.items + 1
    local text, replaced = self:left(self.items[at], row, col)
    if text then
      self.index = at
      return text, replaced, self.items[at]
    end
  end
end

--- Moves to another item that fits and reads differently; returns whether there is one.
function Session:cycle(step, row, col)
  local before = self:current(row, col)
  for _ = 1, #self.items do
    self.index = (self.index + step - 1) % #self.items + 1
    local text = self:left(self.items[self.index], row, col)
    if text and text ~= before then
      return true
    end
  end
  return false
end

return Session
