-- Where the server is.

local config = require('draftline.config')

local M = {}

local function runnable(path)
  return vim.fn.executable(path) == 1
end

--- The checkout this plugin lies in: editors/neovim is two levels below its root.
function M.checkout()
  local here = debug.getinfo(1, 'S').source:sub(2)
  return vim.fs.normalize(vim.fn.fnamemodify(vim.fn.resolve(here), ':p:h:h:h:h:h'))
end

--- The environment that the README's quick start makes.
function M.venv()
  local inside = vim.fn.has('win32') == 1 and '.venv/Scripts/draftline.exe' or '.venv/bin/draftline'
  return vim.fs.joinpath(M.checkout(), inside)
end

--- The command as a list, and where it was found: 'setting', 'PATH' or 'environment';
--- nil and words for the user if there is none.
function M.find()
  local values = config.get()
  if type(values.cmd) == 'function' then
    return values.cmd, 'setting'
  end
  if values.cmd then
    local cmd = vim.deepcopy(values.cmd)
    cmd[1] = vim.fn.expand(cmd[1])
    if runnable(cmd[1]) then
      return cmd, 'setting'
    end
    return nil, ('`cmd` of setup() names %s, which cannot be run.'):format(cmd[1])
  end
  local from
  local program = vim.fn.exepath('draftline')
  if program ~= '' then
    from = 'PATH'
  elseif runnable(M.venv()) then
    program, from = M.venv(), 'environment'
  else
    return nil, 'the server was not found: there is no `draftline` on the PATH and no ' .. M.venv() .. '.'
  end
  local cmd = { program, 'lsp', '--log-level', values.log_level }
  if values.log_file then
    vim.fn.mkdir(vim.fs.dirname(values.log_file), 'p')
    vim.list_extend(cmd, { '--log-file', values.log_file })
  end
  return cmd, from
end

M.advice = 'Install Draftline in a Python environment (`python3 -m venv .venv && .venv/bin/pip install -e .` in its '
  .. "checkout), then put it on the PATH or set `cmd = { '/path/to/.venv/bin/draftline', 'lsp' }` in setup()."

return M
