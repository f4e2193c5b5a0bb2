-- :checkhealth draftline

local config = require('draftline.config')
local server = require('draftline.server')
local server_command = require('draftline.server_command')
local state = require('draftline.state')

local M = {}

local function check_neovim()
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.10') == 0 then
    vim.health.error('Neovim ' .. version .. ' is too old; 0.10 is needed')
    return
  end
  vim.health.ok('Neovim ' .. version)
  if not config.values then
    vim.health.error("setup() was not called", "Put require('draftline').setup{} into your init.lua")
    return
  end
  local backend = config.get().backend
  vim.health.info('suggestions are drawn by ' .. (backend == 'native' and 'vim.lsp.inline_completion' or 'this plugin'))
end

local function check_server()
  local cmd, from = server_command.find()
  if not cmd then
    vim.health.error(from, { server_command.advice })
    return
  end
  if type(cmd) == 'function' then
    vim.health.ok('server: a function of setup()')
  else
    vim.health.ok(('server: %s (%s)'):format(table.concat(cmd, ' '), from))
  end
  local client = server.client()
  if not client then
    vim.health.warn('the server is not running', 'Open a file; `:Draftline restart` starts it after it ended')
    return
  end
  vim.health.ok('the server runs' .. (client.initialized and '' or ', and has not answered `initialize` yet'))
  local kind = state.kind()
  local words = kind .. (state.percentage and (' %d%%'):format(state.percentage) or '')
  if kind == 'error' then
    vim.health.error(state.message, state.next_step ~= '' and { state.next_step } or nil)
  else
    vim.health.info('state: ' .. words .. (state.message ~= '' and ' (' .. state.message .. ')' or ''))
  end
  if state.reason ~= '' and kind ~= 'error' then
    vim.health.info('the last request got no suggestion: ' .. state.reason)
  end
  vim.health.info('`draftline doctor` in a terminal checks the machine and the model')
end

local function check_keys()
  for name, key in pairs(config.get().keys or {}) do
    if key then
      local map = vim.fn.maparg(key, 'i', false, true)
      if (map.desc or ''):find('^Draftline: ') then
        vim.health.ok(('%s: %s'):format(key, name))
      else
        vim.health.warn(
          ('%s (%s) belongs to something else now'):format(key, name),
          'Call setup() after it, or map <Plug>(draftline-' .. name .. ') to another key'
        )
      end
    end
  end
end

local function check_others()
  for plugin, name in pairs({ copilot = 'copilot.lua', codeium = 'codeium', supermaven = 'supermaven', tabby = 'tabby' }) do
    if package.loaded[plugin] or (plugin == 'copilot' and vim.g.loaded_copilot) then
      vim.health.warn(name .. ' also draws ghost text', 'Two suggestions at one cursor cannot be told apart')
    end
  end
  if config.get().hide_in_menu then
    vim.health.ok('no ghost text while a completion menu is open')
  end
end

function M.check()
  vim.health.start('draftline: Neovim')
  check_neovim()
  if not config.values then
    return
  end
  vim.health.start('draftline: server')
  check_server()
  vim.health.start('draftline: keys')
  check_keys()
  vim.health.start('draftline: other plugins')
  check_others()
end

return M
