-- A companion without a process: keeps what the plugin sends, and sends what a test wants.
local M = {
  --- Messages from the plugin.
  received = {},
  --- Results by method; `{}` for others. `false` leaves the request unanswered.
  results = { ['review/list'] = {}, ['hello'] = { protocol = 1, version = '0', pid = 1, workspace = { '/' } } },
  --- What the user was notified of.
  notices = {},
}

local jobs, last = {}, 0

---@diagnostic disable: duplicate-set-field
vim.fn.jobstart = function(_, options)
  last = last + 1
  jobs[last] = options
  return last
end

vim.fn.chansend = function(id, line)
  local message = vim.json.decode(line)
  M.received[#M.received + 1] = message
  local result = M.results[message.method]
  if message.id and result ~= false then
    M.send({ id = message.id, result = result or vim.empty_dict() }, id)
  end
end

vim.fn.chanclose = function() end

vim.notify = function(message)
  M.notices[#M.notices + 1] = message
end

--- Sends a message to the plugin, from the latest companion unless `id` names another.
function M.send(message, id)
  M.send_raw(vim.json.encode(message) .. '\n', id)
end

function M.send_raw(data, id)
  jobs[id or last].on_stdout(id or last, vim.split(data, '\n', { plain = true }))
end

function M.notify(method, params)
  M.send({ method = method, params = params })
end

function M.exit(code, id)
  jobs[id or last].on_exit(id or last, code)
end

function M.started()
  return last
end

--- The parameters of the messages of a method.
function M.params(method)
  local params = {}
  for _, message in ipairs(M.received) do
    if message.method == method then
      params[#params + 1] = message.params
    end
  end
  return params
end

--- Opens a file with these lines, and starts the plugin.
function M.open(name, lines)
  local path = vim.fn.tempname() .. name
  vim.fn.writefile(lines, path)
  vim.cmd.edit(vim.fn.fnameescape(path))
  require('alongside').start()
  return path
end

--- Triggers events that only the main loop would, and waits until everything is reported.
function M.event(...)
  for _, event in ipairs({ ... }) do
    vim.api.nvim_exec_autocmds(event, { buffer = 0, modeline = false })
  end
end

function M.settle()
  assert(vim.wait(5000, require('alongside.context').is_reported, 5), 'not everything was reported')
end

function M.has_notice(part)
  return #vim.tbl_filter(function(notice)
    return notice:find(part, 1, true) ~= nil
  end, M.notices)
end

return M
