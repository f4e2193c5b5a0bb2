-- Suggestions while you type: asks, shows, accepts.
--
-- What is on screen is checked against the buffer at every change: a change of lines takes it off at once, and the
-- event behind the key draws what is left of it, if it still fits.

local Session = require('draftline.session')
local compat = require('draftline.compat')
local config = require('draftline.config')
local ghost = require('draftline.ghost')
local menu = require('draftline.menu')
local pieces = require('draftline.pieces')
local server = require('draftline.server')
local state = require('draftline.state')

local M = {}

local INVOKED, AUTOMATIC = 1, 2

local shown ---@type table?   the session on screen
local pending ---@type table? the session whose answer is awaited
local asked ---@type table?   where the last request was made, so that one key makes one
local timer = assert(vim.uv.new_timer())
local due = false ---@type boolean     a request will be made when the timer ends
local followed = {}

local function place()
  local cursor = vim.api.nvim_win_get_cursor(0)
  return vim.api.nvim_get_current_buf(), cursor[1] - 1, cursor[2]
end

local function inserting()
  return vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
end

--- Whether suggestions are wanted in a buffer: `:Draftline disable`, or `vim.b.draftline = false` for one.
function M.active(buf)
  return state.enabled and vim.b[buf].draftline ~= false
end

local function hidden_by_menu()
  return config.get().hide_in_menu and menu.visible()
end

local function no_request()
  timer:stop()
  due = false
end

local function forget_pending()
  no_request()
  if pending then
    local client = server.client()
    if client and pending.request then
      compat.call(client, 'cancel_request', pending.request)
    end
    pending = nil
    state.wait('suggestion', false)
  end
end

--- Takes everything off the screen and waits for nothing.
function M.abort()
  forget_pending()
  if shown then
    ghost.clear(shown.buf)
    shown = nil
  end
  asked = nil
end

local function draw()
  if not shown then
    return
  end
  local buf, row, col = place()
  if buf ~= shown.buf then
    ghost.clear(shown.buf)
    shown = nil
    return
  end
  local text, replaced = shown:current(row, col)
  if not text then
    ghost.clear(buf)
    shown = nil
  elseif hidden_by_menu() or not inserting() then
    ghost.clear(buf)
  else
    local hint = #shown.items > 1 and ('(%d/%d)'):format(shown.index, #shown.items) or nil
    ghost.show(buf, row, col, text, replaced, hint)
  end
end

local function answered(session, err, result, encoding)
  if session ~= pending then
    return
  end
  pending = nil
  state.wait('suggestion', false)
  -- null: a newer request took the place of this one.
  if err or result == nil or result == vim.NIL then
    return
  end
  session:answer(result.items or result, encoding)
  local _, row, col = place()
  if vim.api.nvim_get_current_buf() ~= session.buf or not inserting() or not M.active(session.buf) then
    return
  end
  local text = session:current(row, col)
  if not text then
    if #session.items == 0 and shown then
      ghost.clear(shown.buf)
      shown = nil
    end
    return
  end
  if session.step then
    -- Asked for others than the one on screen: begin with the first that differs.
    if text == session.before then
      session:cycle(session.step, row, col)
    end
    if #session.items == 1 and text == session.before then
      vim.api.nvim_echo({ { 'Draftline: there is no other suggestion' } }, false, {})
    end
  end
  shown = session
  draw()
end

local function ask(kind, step)
  no_request()
  local buf, row, col = place()
  local client = server.client_of(buf)
  if not client or not inserting() or not M.active(buf) or hidden_by_menu() then
    return
  end
  asked = { buf = buf, tick = vim.api.nvim_buf_get_changedtick(buf), row = row, col = col }
  local session = Session.new(buf, row, col)
  if step then
    session.step = step
    session.before = shown and shown:current(row, col)
  end
  pending = session
  local encoding = client.offset_encoding
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    position = { line = row, character = compat.to_units(session.line, col, encoding) },
    context = { triggerKind = kind },
  }
  local sent, request = compat.call(client, 'request', 'textDocument/inlineCompletion', params, function(err, result)
    answered(session, err, result, encoding)
  end, buf)
  if sent then
    session.request = request
    state.wait('suggestion', pending == session)
  elseif pending == session then
    pending = nil
  end
end

--- After a key: shows what is left and asks for what comes next.
function M.refresh()
  local buf, row, col = place()
  if not inserting() or not M.active(buf) then
    M.abort()
    return
  end
  draw()
  if not config.get().automatic or hidden_by_menu() or not server.client_of(buf) then
    no_request()
    return
  end
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  if asked and asked.buf == buf and asked.tick == tick and asked.row == row and asked.col == col then
    return
  end
  due = true
  timer:start(config.get().debounce_ms, 0, function()
    vim.schedule(function()
      if due then
        ask(AUTOMATIC)
      end
    end)
  end)
end

--- For tests: nothing is asked for and nothing will be.
function M.idle()
  return not due and not pending
end

--- The server can answer now.
function M.ready()
  asked = nil
  if inserting() then
    M.refresh()
  end
end

--- Whether there is a suggestion on screen that fits the cursor.
function M.visible()
  if not shown or not inserting() or hidden_by_menu() then
    return false
  end
  local buf, row, col = place()
  return buf == shown.buf and M.active(buf) and shown:current(row, col) ~= nil
end

--- Inserts 'all', a 'word' or a 'line' of it. Returns false if there is none.
function M.take(amount)
  if not M.visible() then
    return false
  end
  local buf, row, col = place()
  local session = assert(shown)
  local text, replaced, item = session:current(row, col)
  local piece = pieces.take(text, amount)
  local whole = piece == text
  local lines = vim.split(piece, '\n', { plain = true })
  ghost.clear(buf)
  vim.api.nvim_buf_set_text(buf, row, col, row, col + (whole and replaced or 0), lines)
  local last = #lines
  vim.api.nvim_win_set_cursor(0, { row + last, last == 1 and col + #piece or #lines[last] })
  if whole then
    shown = nil
    forget_pending()
    local client = server.client()
    if client and item.command then
      compat.execute(client, item.command, buf)
    end
  end
  M.refresh()
  return true
end

--- Shows another suggestion; asks for several if there is one only.
function M.cycle(step)
  local buf, row, col = place()
  if not M.active(buf) or not inserting() then
    return
  end
  if shown and shown:cycle(step, row, col) then
    draw()
  elseif not (shown and shown.step) then
    ask(INVOKED, step)
  end
end

--- Takes it off; the same place is not asked about again.
function M.dismiss()
  local there = M.visible()
  forget_pending()
  if shown then
    ghost.clear(shown.buf)
    shown = nil
  end
  local buf, row, col = place()
  asked = { buf = buf, tick = vim.api.nvim_buf_get_changedtick(buf), row = row, col = col }
  return there
end

--- Watches a buffer's lines.
function M.follow(buf)
  if followed[buf] then
    return
  end
  followed[buf] = vim.api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last_old, last_new)
      for _, session in ipairs({ shown or false, pending or false }) do
        if session and session.buf == buf then
          session:changed(first, last_old, last_new)
        end
      end
      if shown and shown.buf == buf then
        ghost.clear(buf)
      end
    end,
    on_reload = function()
      if shown and shown.buf == buf then
        shown.broken = true
        ghost.clear(buf)
      end
    end,
    on_detach = function()
      followed[buf] = nil
    end,
  })
end

function M.start(group)
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, {
    group = group,
    callback = M.refresh,
  })
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave', 'WinLeave' }, { group = group, callback = M.abort })
  menu.watch(group, function()
    if inserting() then
      M.refresh()
    end
  end)
end

function M.attached(_, buf)
  M.follow(buf)
  if inserting() and buf == vim.api.nvim_get_current_buf() then
    M.refresh()
  end
end

function M.switched()
  if not state.enabled then
    M.abort()
  elseif inserting() then
    asked = nil
    M.refresh()
  end
end

return M
