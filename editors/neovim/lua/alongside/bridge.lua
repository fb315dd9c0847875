--- The companion as a Neovim job: JSON-RPC, one message per line. See docs/PROTOCOL.md.

---@class alongside.Welcome
---@field protocol integer
---@field version string
---@field pid integer
---@field workspace string[]

---@class alongside.Agent
---@field name string
---@field version? string
---@field session string
---@field listening boolean
---@field since integer

---@class alongside.Error
---@field message string
---@field data? { kind: string }

---@alias alongside.Callback fun(error: alongside.Error?, result: any)

---@class alongside.Bridge
---@field welcome? alongside.Welcome what the companion responded to `hello`
---@field agents alongside.Agent[] the connected agents
---@field errors? string the end of the companion's stderr
local M = { agents = {} }

-- A companion that crashes this often within a minute is not restarted again.
local MAX_RESTARTS = 5
local MAX_ERROR_BYTES = 4000

---@type integer?
local job
---@type string[]
local arguments
---@type fun()
local ready
-- The pieces of a line that is not complete yet.
---@type string[]
local partial = {}
---@type table<integer, alongside.Callback?>
local pending = {}
local last_id = 0
---@type table<string, fun(params: table)?>
local handlers = {}
---@type integer[]
local restarts = {}
---@type table<string, string>
local variables = {}

--- Calls `handler` with the parameters of every notification of a method.
---@param method string
---@param handler fun(params: table)
function M.on(method, handler)
  handlers[method] = handler
end

--- An agent as shown to the user.
---@param name string
---@param version? string
---@return string
function M.agent_name(name, version)
  return version and name .. ' ' .. version or name
end

---@return boolean
function M.is_running()
  return job ~= nil
end

---@param message table
---@return boolean
local function send(message)
  if not job then
    return false
  end
  message.jsonrpc = '2.0'
  -- JSON escapes newlines. Invalid UTF-8 is sent as it is, and refused by the companion.
  local ok, line = pcall(vim.json.encode, message)
  return ok and pcall(vim.fn.chansend, job, line .. '\n')
end

--- Sends a notification.
---@param method string
---@param params? table
---@return boolean was_sent
function M.notify(method, params)
  return send({ method = method, params = params or vim.empty_dict() })
end

--- Sends a request; `callback` is called with the response.
---@param method string
---@param params? table
---@param callback? alongside.Callback
function M.request(method, params, callback)
  last_id = last_id + 1
  pending[last_id] = callback or function() end
  if not send({ id = last_id, method = method, params = params or vim.empty_dict() }) then
    pending[last_id] = nil
    return callback and callback({ message = 'the companion is not running; run :AlongsideStart' })
  end
end

---@param line string
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

---@param id integer
---@param data string[] the first piece continues the last line, as `:help channel-lines` says
local function on_stdout(id, data)
  if id ~= job then
    return
  end
  for index, piece in ipairs(data) do
    if index > 1 then
      local line = table.concat(partial)
      partial = {}
      if line ~= '' then
        receive(line)
      end
    end
    partial[#partial + 1] = piece
  end
end

--- Sets the variables that point agents in new terminals at this Neovim.
---@param new table<string, string>
local function set_variables(new)
  for name in pairs(variables) do
    vim.env[name] = nil
  end
  variables = new
  for name, value in pairs(new) do
    vim.env[name] = value
  end
end

--- Whether a folder is the root of a repository. An empty `.git` directory is none: the sandbox of an agent may leave one in the
--- temporary directory.
---@param folder string
---@return boolean
local function is_repository(folder)
  local git = folder .. '/.git'
  local found = vim.uv.fs_stat(git)
  return found ~= nil and (found.type ~= 'directory' or vim.fs.dir(git)() ~= nil)
end

---@param directory string
---@return string?
local function repository(directory)
  if is_repository(directory) then
    return directory
  end
  for folder in vim.fs.parents(directory) do
    if is_repository(folder) then
      return folder
    end
  end
end

---@return string[]
local function workspace()
  local configured = require('alongside').options().workspace
  if type(configured) == 'function' then
    configured = configured()
  end
  local directory = vim.fn.getcwd(-1, -1)
  return configured or { repository(directory) or directory }
end

--- Reports the workspace folders of the current directory.
function M.move()
  M.request('workspace/set', { folders = workspace() }, function(error)
    if not error then
      M.request('terminal/environment', nil, function(_, result)
        set_variables(result and result.variables or variables)
      end)
    end
  end)
end

---@type fun(done: fun())
local launch

--- Forgets the companion, and fails the requests that it has not responded to.
local function forget()
  local callbacks = pending
  job, partial, pending, M.welcome, M.agents = nil, {}, {}, nil, {}
  for _, callback in pairs(callbacks) do
    callback({ message = 'the companion has stopped' })
  end
  require('alongside.statusline').changed()
end

---@param id integer
---@param code integer
local function on_exit(id, code)
  -- One that was stopped may exit only after the next one was started.
  if id ~= job then
    return
  end
  forget()
  if vim.v.exiting ~= vim.NIL then
    return
  end
  local notify = require('alongside').notify
  if code == 0 then
    set_variables({})
    return notify('the companion was stopped; run :AlongsideStart to start it again')
  end
  ---@diagnostic disable-next-line: undefined-field
  local now = vim.uv.now()
  restarts = vim.tbl_filter(function(time)
    return now - time < 60000
  end, restarts)
  if #restarts >= MAX_RESTARTS then
    local message = 'the companion keeps crashing (exit code ' .. code .. '); see :checkhealth alongside'
    return notify(message, vim.log.levels.ERROR)
  end
  restarts[#restarts + 1] = now
  launch(function()
    notify('the companion crashed and was restarted')
  end)
end

function launch(done)
  M.errors = ''
  local ok, started = pcall(vim.fn.jobstart, arguments, {
    -- It shuts down cleanly when its stdin closes.
    detach = true,
    on_stdout = on_stdout,
    on_stderr = function(_, data)
      M.errors = (M.errors .. table.concat(data, '\n')):sub(-MAX_ERROR_BYTES)
    end,
    on_exit = on_exit,
  })
  if not ok or started <= 0 then
    return require('alongside').notify('cannot start `' .. arguments[1] .. '`; is it installed?', vim.log.levels.WARN)
  end
  job = started --[[@as integer]]
  local hello = { protocol = 1, name = 'neovim', watch = true, interactive = true, opensFiles = true }
  M.request('hello', hello, function(error, welcome)
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

--- Starts the companion; `is_ready` is called when it is ready, and again after every restart.
---@param is_ready fun()
function M.start(is_ready)
  if job then
    return
  end
  ready, restarts = is_ready, {}
  local options = require('alongside').options()
  -- The same after a restart, even if the directory has changed: the companion finds its previous port by them.
  arguments = { options.command, 'bridge', '--name', 'neovim', '--display-name', 'Neovim' }
  vim.list_extend(arguments, { '--pid', tostring(vim.fn.getpid()) })
  for _, folder in ipairs(workspace()) do
    vim.list_extend(arguments, { '--workspace', folder })
  end
  launch(function() end)
end

--- Has the companion keep pending changes if Neovim exits to restart.
---@param reason? string why it exits: `v:exitreason`, which Neovim has since 0.12
function M.exiting(reason)
  if reason == 'restart' then
    M.notify('leaving')
  end
end

--- Stops the companion; pending changes are rejected.
function M.stop()
  if job then
    vim.fn.chanclose(job, 'stdin')
    set_variables({})
    forget()
  end
end

vim.api.nvim_create_autocmd('VimLeavePre', {
  group = vim.api.nvim_create_augroup('alongside-bridge', {}),
  callback = function()
    M.exiting(vim.v.exitreason)
  end,
})

M.on('problems/changed', function(params)
  for _, problem in ipairs(params.problems) do
    require('alongside').notify(problem, vim.log.levels.ERROR)
  end
end)

M.on('file/show', function(target)
  require('alongside.show').show(target)
end)

M.on('agents/changed', function(params)
  M.agents = params.agents
  require('alongside.statusline').changed()
end)

return M
