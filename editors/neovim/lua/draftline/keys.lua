-- Mappings in insert mode. Where there is no suggestion a key does what it did before.

local M = {}

local PLUG = '<Plug>(draftline-%s)'

-- Keys of ours, and the mappings that they had before.
local mine = {}

local function plug(name)
  return PLUG:format(name)
end

local function codes(keys)
  return vim.api.nvim_replace_termcodes(keys, true, true, true)
end

-- What a key did before, under a name of ours: a mapping of the user or another plugin, or the key itself.
local function keep(name, key)
  local before = vim.fn.maparg(key, 'i', false, true)
  local fallback = plug('fallback-' .. name)
  if vim.tbl_isempty(before) or before.buffer == 1 then
    vim.keymap.set('i', fallback, key, { remap = false })
  elseif not (before.desc or ''):find('^Draftline: ') then
    before.lhs, before.lhsraw, before.lhsrawalt = fallback, codes(fallback), nil
    vim.fn.mapset('i', false, before)
  end
  return fallback
end

-- Before other keys are set: those of an earlier setup() become what they were.
local function give_back()
  for key, before in pairs(mine) do
    local now = vim.fn.maparg(key, 'i', false, true)
    if (now.desc or ''):find('^Draftline: ') then
      vim.keymap.del('i', key)
      if not vim.tbl_isempty(before) then
        vim.fn.mapset('i', false, before)
      end
    end
  end
  mine = {}
end

local DESCRIPTIONS = {
  accept = 'accept the suggestion',
  accept_word = 'accept a word',
  accept_line = 'accept a line',
  next = 'next suggestion',
  previous = 'previous suggestion',
  dismiss = 'dismiss the suggestion',
}

-- CTRL-G u: what was accepted is undone by itself.
local ACTIONS = {
  accept = '<C-g>u<Cmd>lua require("draftline").accept()<CR><C-g>u',
  accept_word = '<C-g>u<Cmd>lua require("draftline").accept_word()<CR><C-g>u',
  accept_line = '<C-g>u<Cmd>lua require("draftline").accept_line()<CR><C-g>u',
  next = '<Cmd>lua require("draftline").next()<CR>',
  previous = '<Cmd>lua require("draftline").previous()<CR>',
  dismiss = '<Cmd>lua require("draftline").dismiss()<CR>',
}

--- `<Plug>(draftline-accept)` and so on, for mappings of one's own.
function M.plugs()
  for name, action in pairs(ACTIONS) do
    vim.keymap.set('i', plug(name), action, { remap = false, silent = true, desc = 'Draftline: ' .. DESCRIPTIONS[name] })
  end
end

function M.set(keys)
  M.plugs()
  give_back()
  for name, key in pairs(keys or {}) do
    if ACTIONS[name] and key then
      local before = vim.fn.maparg(key, 'i', false, true)
      mine[key] = before.buffer == 1 and {} or before
      local fallback = keep(name, key)
      -- These two ask if there is nothing yet; the others only make sense with a suggestion.
      local always = name == 'next' or name == 'previous'
      vim.keymap.set('i', key, function()
        local draftline = require('draftline')
        if draftline.visible() or (always and draftline.active()) then
          return plug(name)
        end
        return fallback
      end, { expr = true, remap = true, silent = true, desc = 'Draftline: ' .. DESCRIPTIONS[name] })
    end
  end
end

return M
