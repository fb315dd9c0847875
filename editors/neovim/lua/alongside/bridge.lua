--- The companion as a job of Neovim: one JSON-RPC message a line, see docs/PROTOCOL.md.
local M = {
  --- What the companion said about itself, once it has.
  welcome = nil,
  --- The agents that are connected.
  agents = {},
}

-- A companion that dies this often within a minute does not get well by starting it again.
local MOST_RESTARTS = 5

local job, arguments, ready
local partial, pending, last_id = '', {}, 0
local handlers, restarts, variables = {}, {}, {}

--- Calls `handler` with the parameters of every notification of a method.
function M.on(method, handler)
  handlers[method] = handler
end

function M.is_running()
  return job ~= nil
end

local function send(message)
  if not job then
    return false
  end
  message.jsonrpc = '2.0'
  -- A text that is no UTF-8 is refused by the companion; one with a newline cannot be: JSON escapes it.
  local ok, line = pcall(vim.json.encode, message)
  return ok and pcall(vim.fn.chansend, job, line .. '\n')
end

--- Says something that needs no answer.
function M.notify(method, params)
  return send({ method = method, params = params or vim.empty_dict() })
end

--- Asks; `callback(error, result)` is called with the answer.
function M.request(method, params, callback)
  last_id = last_id + 1
  pending[last_id] = callback or function() end
  if not send({ id = last_id, method = method, params = params or vim.empty_dict() }) then
    pending[last_id] = nil
    return callback and callback({ message = 'the companion is not running; run :AlongsideStart' })
  end
end

local function receive(line)
  local ok, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
  if not ok or type(message) ~= 'table' then
    return
  end
  if message.method then
    local handler = handlers[message.method]
    return handler and handler(message.params or {})
  end
  local callback = pending[message.id]
  if callback then
    pending[message.id] = nil
    callback(message.error, message.result)
  end
end

local function on_stdout(_, data)
  -- The first piece goes on with the line that the last one began.
  partial = partial .. data[1]
  for index = 2, #data do
    local line = partial
    partial = data[index]
    if line ~= '' then
      receive(line)
    end
  end
end

--- Terminals that are opened from now on lead agents to this very Neovim.
local function set_variables(new)
  for name in pairs(variables) do
    vim.env[name] = nil
  end
  variables = new
  for name, value in pairs(new) do
    vim.env[name] = value
  end
end

local function workspace()
  local wanted = require('alongside').options().workspace
  wanted = type(wanted) == 'function' and wanted() or wanted
  local directory = vim.fn.getcwd(-1, -1)
  return wanted or { vim.fs.root(directory, '.git') or directory }
end

--- Tells the companion that Neovim is somewhere else now.
function M.move()
  M.request('workspace/set', { folders = workspace() }, function(error)
    if not error then
      M.request('terminal/environment', nil, function(_, result)
        set_variables(result and result.variables or variables)
      end)
    end
  end)
end

local launch

local function on_exit(_, code)
  local callbacks = pending
  local was_wanted = job == nil
  job, partial, pending, M.welcome, M.agents = nil, '', {}, nil, {}
  for _, callback in pairs(callbacks) do
    callback({ message = 'the companion has stopped' })
  end
  require('alongside.statusline').changed()
  if was_wanted or vim.v.exiting ~= vim.NIL then
    return
  end
  local notify = require('alongside').notify
  if code == 0 then
    set_variables({})
    return notify('the companion was stopped; run :AlongsideStart to start it again')
  end
  local now = vim.uv.now()
  restarts = vim.tbl_filter(function(moment)
    return now - moment < 60000
  end, restarts)
  if #restarts >= MOST_RESTARTS then
    return notify('the companion keeps crashing (exit code ' .. code .. '); see :checkhealth alongside', vim.log.levels.ERROR)
  end
  restarts[#restarts + 1] = now
  launch(function()
    notify('the companion crashed and was restarted')
  end)
end

function launch(done)
  local errors = {}
  local ok, started = pcall(vim.fn.jobstart, arguments, {
    -- It ends by itself when its input closes, and in good order.
    detach = true,
    on_stdout = on_stdout,
    on_stderr = function(_, data)
      vim.list_extend(errors, data)
      M.errors = table.concat(errors, '\n'):sub(-4000)
    end,
    on_exit = on_exit,
  })
  if not ok or started <= 0 then
    return require('alongside').notify('cannot start `' .. arguments[1] .. '`; is it installed?', vim.log.levels.WARN)
  end
  job = started
  M.request('hello', { protocol = 1, name = 'neovim', watch = true, interactive = true }, function(error, welcome)
    if error then
      return require('alongside').notify(error.message, vim.log.levels.ERROR)
    end
    M.welcome = welcome
    M.move()
    ready()
    done()
    require('alongside.statusline').changed()
  end)
end

--- Starts the companion; `is_ready` is called now and after every restart.
function M.start(is_ready)
  if job then
    return
  end
  ready, restarts = is_ready, {}
  local options = require('alongside').options()
  -- The same after a restart, whatever the directory is then: by these the companion finds its former port.
  arguments = { options.command, 'bridge', '--name', 'neovim', '--display-name', 'Neovim', '--pid', tostring(vim.fn.getpid()) }
  for _, folder in ipairs(workspace()) do
    vim.list_extend(arguments, { '--workspace', folder })
  end
  launch(function() end)
end

--- Ends the companion.
function M.stop()
  if job then
    local ending = job
    job = nil
    vim.fn.chanclose(ending, 'stdin')
    set_variables({})
  end
end

M.on('agents/changed', function(params)
  M.agents = params.agents
  require('alongside.statusline').changed()
end)

return M
