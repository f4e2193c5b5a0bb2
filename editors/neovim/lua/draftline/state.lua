-- What the server last said about itself, for the status line and for messages.

local M = {
  enabled = true,
  -- 'none' before a start, else starting, loading, ready, failed or stopped, as the server says.
  server = 'none',
  percentage = nil,
  message = '',
  next_step = '',
  -- Why the last request got no suggestion.
  reason = '',
  -- Requests under way: 'suggestion', 'edit'.
  waiting = {},
}

local function changed()
  vim.schedule(function()
    vim.cmd('redrawstatus!')
    vim.api.nvim_exec_autocmds('User', { pattern = 'DraftlineStatus', modeline = false })
  end)
end

--- One of off, error, loading, busy, ready.
function M.kind()
  if not M.enabled then
    return 'off'
  elseif M.server == 'failed' then
    return 'error'
  elseif M.server == 'starting' or M.server == 'loading' then
    return 'loading'
  elseif M.server == 'none' or M.server == 'stopped' then
    return 'off'
  elseif next(M.waiting) then
    return 'busy'
  end
  return 'ready'
end

--- Takes over fields; returns whether the server has just become ready.
function M.update(fields)
  local before = M.server
  for name, value in pairs(fields) do
    if M[name] ~= value then
      M[name] = value
    end
  end
  if M.server ~= 'loading' and M.server ~= 'starting' then
    M.percentage = nil
  end
  changed()
  return M.server == 'ready' and before ~= 'ready'
end

function M.wait(what, on)
  local value = on and true or nil
  if M.waiting[what] ~= value then
    M.waiting[what] = value
    changed()
  end
end

--- Parameters of `draftline/status`.
function M.from_status(params)
  local fraction = type(params.fraction) == 'number' and params.fraction or nil
  return M.update({
    server = params.state,
    message = params.message or '',
    reason = params.reason or '',
    next_step = params.nextStep or '',
    percentage = fraction and math.floor(100 * fraction + 0.5) or M.percentage,
  })
end

--- A component for the status line, e.g. `Draftline 40%`.
function M.text()
  local kind = M.kind()
  if kind == 'loading' then
    return M.percentage and ('Draftline %d%%'):format(M.percentage) or 'Draftline …'
  end
  return ({ off = 'Draftline off', error = 'Draftline error', busy = 'Draftline …', ready = 'Draftline' })[kind]
end

return M
