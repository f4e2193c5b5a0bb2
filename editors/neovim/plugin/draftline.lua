-- The command exists before setup(), so that `:Draftline` can say what is missing.
if vim.g.loaded_draftline then
  return
end
vim.g.loaded_draftline = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify('Draftline needs Neovim 0.10 or newer.', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('Draftline', function(args)
  require('draftline.command').run(args)
end, {
  nargs = '*',
  range = true,
  desc = 'Draftline: local code completion',
  complete = function(...)
    return require('draftline.command').complete(...)
  end,
})
