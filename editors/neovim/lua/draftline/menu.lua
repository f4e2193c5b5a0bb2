-- Completion menus: Neovim's own, nvim-cmp and blink.cmp.

local M = {}

--- Whether one is open.
function M.visible()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  -- Not require(): a plugin that is loaded later must not be loaded by us.
  local cmp = package.loaded['cmp']
  if type(cmp) == 'table' and cmp.visible and cmp.visible() then
    return true
  end
  local blink = package.loaded['blink.cmp']
  return type(blink) == 'table' and blink.is_menu_visible ~= nil and blink.is_menu_visible() or false
end

--- Calls back when one opens or closes.
function M.watch(group, changed)
  vim.api.nvim_create_autocmd({ 'CompleteChanged', 'CompleteDone' }, {
    group = group,
    callback = function()
      vim.schedule(changed)
    end,
  })
  vim.api.nvim_create_autocmd('User', {
    group = group,
    pattern = { 'BlinkCmpMenuOpen', 'BlinkCmpMenuClose' },
    callback = function()
      vim.schedule(changed)
    end,
  })
  local watched = false
  vim.api.nvim_create_autocmd('InsertEnter', {
    group = group,
    callback = function()
      local cmp = package.loaded['cmp']
      if not watched and type(cmp) == 'table' and cmp.event then
        watched = true
        cmp.event:on('menu_opened', vim.schedule_wrap(changed))
        cmp.event:on('menu_closed', vim.schedule_wrap(changed))
      end
    end,
  })
end

return M
