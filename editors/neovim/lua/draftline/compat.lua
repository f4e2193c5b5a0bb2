-- What differs between Neovim 0.10, 0.11 and 0.12.

local M = {}

local methods = vim.fn.has('nvim-0.11') == 1

--- Calls a method of an LSP client: `client.request(…)` before 0.11, `client:request(…)` since.
function M.call(client, name, ...)
  if methods then
    return client[name](client, ...)
  end
  return client[name](...)
end

--- Bytes of a line to units of the client's encoding.
function M.to_units(line, byte, encoding)
  byte = math.min(byte, #line)
  if encoding == 'utf-8' then
    return byte
  end
  if methods then
    return vim.str_utfindex(line, encoding, byte, false)
  end
  local points, units = vim.str_utfindex(line, byte)
  return encoding == 'utf-32' and points or units
end

--- Units of the client's encoding to bytes of a line.
function M.to_bytes(line, unit, encoding)
  if encoding == 'utf-8' then
    return math.min(unit, #line)
  end
  if methods then
    return vim.str_byteindex(line, encoding, unit, false)
  end
  local ok, byte = pcall(vim.str_byteindex, line, unit, encoding ~= 'utf-32')
  return ok and byte or #line
end

--- Runs an item's command at its server.
function M.execute(client, command, buf)
  if methods then
    client:exec_cmd(command, { bufnr = buf }, function() end)
  else
    local params = { command = command.command, arguments = command.arguments }
    client.request('workspace/executeCommand', params, function() end, buf)
  end
end

return M
