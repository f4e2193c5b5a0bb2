-- Edits by instruction: `draftline/inlineEdit`, shown while it is written, made when the user agrees.

local compat = require('draftline.compat')
local config = require('draftline.config')
local preview = require('draftline.preview')
local server = require('draftline.server')
local state = require('draftline.state')

local M = {}

local current ---@type table?
local count = 0

local function say(text, level)
  vim.notify('Draftline: ' .. text, level or vim.log.levels.INFO)
end

local function keys_of(job, on)
  for name, key in pairs({ accept = config.get().edit.accept, reject = config.get().edit.reject }) do
    if key then
      if on then
        -- A mapping of the buffer itself comes back afterwards.
        local before = vim.api.nvim_buf_call(job.buf, function()
          return vim.fn.maparg(key, 'n', false, true)
        end)
        job.before[name] = before.buffer == 1 and before or nil
        vim.keymap.set('n', key, M[name], { buffer = job.buf, desc = 'Draftline: ' .. name .. ' the edit' })
      elseif vim.api.nvim_buf_is_valid(job.buf) then
        pcall(vim.keymap.del, 'n', key, { buffer = job.buf })
        if job.before[name] then
          vim.api.nvim_buf_call(job.buf, function()
            vim.fn.mapset('n', false, job.before[name])
          end)
        end
      end
    end
  end
end

local function close()
  local job = current
  if not job then
    return
  end
  current = nil
  server.progress[job.token] = nil
  state.wait('edit', false)
  keys_of(job, false)
  preview.clear(job.buf)
  local client = server.client()
  if client and job.request and not job.answer then
    compat.call(client, 'cancel_request', job.request)
  end
end

local function draw(job)
  local note
  if not job.answer then
    note = ('… %d of %d lines'):format(job.kept, job.last - job.first + 1)
  else
    note = table.concat(job.notes, '; ')
  end
  preview.show(job.buf, job.hunks, job.open, job.first - 1, note)
end

local function answered(job, err, answer)
  if job ~= current then
    return
  end
  state.wait('edit', false)
  if err then
    close()
    say(err.code == -32601 and 'this server cannot edit; it may be too old.' or (err.message or 'the edit failed.'), vim.log.levels.ERROR)
    return
  end
  answer = answer or {}
  if not answer.edit or answer.edit == vim.NIL then
    close()
    local message = answer.message ~= '' and answer.message or answer.reason or 'there is no edit.'
    say(message, vim.log.levels.WARN)
    return
  end
  job.answer = answer
  job.hunks, job.open = answer.hunks or job.hunks, nil
  job.notes = {}
  if answer.summary and answer.summary ~= '' then
    job.notes[1] = answer.summary
  end
  if #(answer.flags or {}) > 0 then
    job.doubt = (answer.message or '') ~= '' and answer.message or table.concat(answer.flags, ', ')
    table.insert(job.notes, 'careful: ' .. job.doubt)
  end
  local keys = config.get().edit
  table.insert(job.notes, ('%s accepts, %s rejects'):format(keys.accept or ':Draftline accept', keys.reject or ':Draftline reject'))
  draw(job)
end

local function send(instruction, buf, first, last)
  local client = server.client_of(buf)
  if not client then
    say('the server does not follow this buffer; `:Draftline status` says more.', vim.log.levels.WARN)
    return
  end
  close()
  count = count + 1
  local line = vim.api.nvim_buf_get_lines(buf, last - 1, last, false)[1] or ''
  local job = {
    buf = buf,
    first = first,
    last = last,
    tick = vim.api.nvim_buf_get_changedtick(buf),
    encoding = client.offset_encoding,
    token = 'draftline-edit-' .. count,
    hunks = {},
    kept = 0,
    before = {},
  }
  current = job
  server.progress[job.token] = function(value)
    if job ~= current or job.answer then
      return
    end
    vim.list_extend(job.hunks, value.hunks or {})
    job.open = value.open
    job.kept = value.kept or job.kept
    draw(job)
  end
  vim.api.nvim_buf_attach(buf, false, {
    on_lines = function()
      if job ~= current then
        return true
      end
      if not job.applying then
        vim.schedule(function()
          if job == current then
            close()
            say('the text changed meanwhile; the edit was dropped.', vim.log.levels.WARN)
          end
        end)
        return true
      end
    end,
  })
  keys_of(job, true)
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buf), version = vim.lsp.util.buf_versions[buf] },
    range = {
      start = { line = first - 1, character = 0 },
      ['end'] = { line = last - 1, character = compat.to_units(line, #line, client.offset_encoding) },
    },
    instruction = instruction,
    partialResultToken = job.token,
  }
  state.wait('edit', true)
  local sent, request = compat.call(client, 'request', 'draftline/inlineEdit', params, function(err, answer)
    answered(job, err, answer)
  end, buf)
  job.request = request
  if not sent then
    close()
    say('the server is gone; `:Draftline restart` starts it again.', vim.log.levels.ERROR)
  else
    draw(job)
  end
end

--- Asks for an edit of lines, counted from 1; without an instruction the user is asked for it.
function M.start(instruction, first, last)
  local buf = vim.api.nvim_get_current_buf()
  if not vim.bo[buf].modifiable then
    say('this buffer cannot be changed.', vim.log.levels.WARN)
    return
  end
  if instruction and instruction:find('%S') then
    send(instruction, buf, first, last)
    return
  end
  vim.ui.input({ prompt = 'Draftline, change the selection: ' }, function(text)
    if text and text:find('%S') then
      send(text, buf, first, last)
    end
  end)
end

local function apply(job)
  if job ~= current or job.tick ~= vim.api.nvim_buf_get_changedtick(job.buf) then
    close()
    say('the text changed meanwhile; the edit was dropped.', vim.log.levels.WARN)
    return
  end
  job.applying = true
  close()
  -- All of it is one change for undo.
  vim.lsp.util.apply_workspace_edit(job.answer.edit, job.encoding)
end

--- Makes the edit; asks first if the server has doubts. False if there is none to accept.
function M.accept()
  local job = current
  if not job then
    return false
  end
  if not job.answer then
    say('the edit is still being written.')
    return true
  end
  if not job.doubt then
    apply(job)
    return true
  end
  local question = { prompt = 'Draftline: ' .. job.doubt .. '. Apply it?' }
  vim.ui.select({ 'Apply anyway', 'Leave it' }, question, function(choice)
    if choice == 'Apply anyway' then
      apply(job)
    elseif choice and job == current then
      close()
    end
  end)
  return true
end

--- Leaves the text as it is, also while the edit is being written.
function M.reject()
  local there = current ~= nil
  close()
  return there
end

--- The server ended: an edit that it was writing never comes.
function M.server_ended()
  if current and not current.answer then
    close()
    say('the server ended before the edit was written.', vim.log.levels.WARN)
  end
end

--- For tests and status: 'writing', 'waiting' for the user, or nil.
function M.phase()
  return current and (current.answer and 'waiting' or 'writing') or nil
end

return M
