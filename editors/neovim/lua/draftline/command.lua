-- :Draftline

local compat = require('draftline.compat')
local config = require('draftline.config')
local server = require('draftline.server')
local server_command = require('draftline.server_command')
local state = require('draftline.state')

local M = {}

local function say(lines, level)
  vim.notify(type(lines) == 'table' and table.concat(lines, '\n') or lines, level or vim.log.levels.INFO)
end

-- A window for text that is longer than a message.
local function scratch(lines)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.cmd('botright ' .. math.min(#lines + 1, 15) .. 'split')
  vim.api.nvim_win_set_buf(0, buf)
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf })
end

local function status()
  local info = require('draftline').status_info()
  local lines = { 'Draftline: ' .. info.kind .. (info.percentage and (' %d%%'):format(info.percentage) or '') }
  if info.message ~= '' then
    lines[#lines + 1] = info.message
  end
  if info.next_step ~= '' then
    lines[#lines + 1] = info.next_step
  end
  if info.reason ~= '' then
    lines[#lines + 1] = 'last reason for no suggestion: ' .. info.reason
  end
  local cmd, from = server_command.find()
  if type(cmd) == 'table' then
    lines[#lines + 1] = 'server: ' .. table.concat(cmd, ' ') .. ' (' .. from .. ')'
  end
  local buf = vim.api.nvim_get_current_buf()
  local active = require('draftline').active(buf)
  lines[#lines + 1] = 'this buffer: '
    .. (server.client_of(buf) and 'followed' or 'not followed by the server')
    .. (active and '' or ', suggestions off')
  say(lines)
end

local function statistics()
  local client = server.client()
  if not client then
    say('Draftline: the server is not running.', vim.log.levels.WARN)
    return
  end
  compat.call(client, 'request', 'draftline/statistics', vim.empty_dict(), function(err, answer)
    if err or type(answer) ~= 'table' then
      say('Draftline: ' .. (err and err.message or 'no statistics'), vim.log.levels.WARN)
      return
    end
    local lines = { 'Draftline, so far on this machine (numbers only, kept here)' }
    for _, part in ipairs({ 'counts', 'reasons', 'sources', 'latencyMs' }) do
      local values = answer[part]
      if type(values) == 'table' and next(values) then
        lines[#lines + 1] = ''
        lines[#lines + 1] = part
        local names = vim.tbl_keys(values)
        table.sort(names)
        for _, name in ipairs(names) do
          if values[name] ~= vim.NIL then
            lines[#lines + 1] = ('  %-32s %s'):format(name, values[name])
          end
        end
      end
    end
    scratch(lines)
  end, 0)
end

local function log()
  local path = config.get().log_file
  if not path or config.get().cmd or vim.fn.filereadable(path) == 0 then
    path = vim.fn.has('nvim-0.12') == 1 and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  end
  vim.cmd.tabedit(vim.fn.fnameescape(path))
end

local names ---@type string[]?

-- The catalog is the server's; asked once.
local function models()
  if names then
    return names
  end
  local cmd = server_command.find()
  if type(cmd) ~= 'table' then
    return {}
  end
  local program = {}
  for _, word in ipairs(cmd) do
    if word == 'lsp' then
      break
    end
    program[#program + 1] = word
  end
  local ok, done = pcall(function()
    return vim.system(vim.list_extend(program, { 'model', 'list' }), { text = true }):wait(5000)
  end)
  if not ok or done.code ~= 0 then
    return {}
  end
  names = {}
  for line in vim.gsplit(done.stdout, '\n', { plain = true }) do
    if line == '' then
      break
    end
    local name = line:match('^(%S+)')
    if name and name ~= 'name' then
      names[#names + 1] = name
    end
  end
  return names
end

local function model(args)
  local name = args[1]
  if not name then
    say('Draftline: model ' .. (config.get().settings.model or 'is the default one') .. '; `:Draftline model NAME` changes it.')
    return
  end
  server.set('model', name)
  say('Draftline: changing to ' .. name)
end

local COMMANDS = {
  enable = function()
    require('draftline').enable()
  end,
  disable = function()
    require('draftline').disable()
  end,
  toggle = function()
    require('draftline').toggle()
    say('Draftline is ' .. (state.enabled and 'on' or 'off'))
  end,
  restart = function()
    require('draftline').restart()
  end,
  status = status,
  statistics = statistics,
  log = log,
  model = model,
  edit = function(words, args)
    local instruction = args.args:gsub('^%s*edit%s*', '', 1)
    require('draftline').edit(#words > 0 and instruction or nil, args.line1, args.line2)
  end,
  accept = function()
    if not require('draftline').accept_edit() then
      say('Draftline: there is no edit to accept.')
    end
  end,
  reject = function()
    require('draftline').reject_edit()
  end,
}

function M.run(args)
  local words = vim.deepcopy(args.fargs)
  local name = table.remove(words, 1) or 'status'
  local command = COMMANDS[name]
  if not command then
    local known = vim.tbl_keys(COMMANDS)
    table.sort(known)
    say(('Draftline: there is no command `%s`; there are %s.'):format(name, table.concat(known, ', ')), vim.log.levels.ERROR)
  elseif not config.values then
    say("Draftline: call require('draftline').setup{} first.", vim.log.levels.WARN)
  else
    command(words, args)
  end
end

function M.complete(lead, line)
  local words = vim.split(vim.trim(line:match('Draftline(.*)$') or ''), '%s+', { trimempty = true })
  local choices = {}
  if #words == 0 or (#words == 1 and lead ~= '') then
    choices = vim.tbl_keys(COMMANDS)
  elseif words[1] == 'model' then
    choices = vim.list_slice(models())
  end
  table.sort(choices)
  return vim.tbl_filter(function(choice)
    return vim.startswith(choice, lead)
  end, choices)
end

return M
