--- How a pending change appears by itself: the option `open`.
local M = {}

local bridge = require('alongside.bridge')
local names = require('alongside.names')
local preview = require('alongside.preview')

-- After this long without a key, a window that opens does not disturb.
local QUIET_MS = 2000

---@alias alongside.Open 'auto'|'notify'|'view'|'focus'

---@type integer?
local last_key
local has_key = false
local KEY_DESCRIPTION = 'Review a pending change'

---@return integer
local function now()
  ---@diagnostic disable-next-line: undefined-field
  return vim.uv.now()
end

--- Follows the user's typing and maps the key that opens a review.
function M.start()
  vim.on_key(function()
    last_key = now()
  end, vim.api.nvim_create_namespace('alongside-typing'))
  local keys = require('alongside').options().keys
  local key = keys and keys.review
  if not key then
    return
  end
  for _, mode in ipairs({ 'n', 'x', 'i', 't' }) do
    local mapping = vim.fn.maparg(key, mode, false, true)
    -- Perhaps ours, from before the companion was restarted.
    local is_free = vim.tbl_isempty(mapping) or mapping.desc == KEY_DESCRIPTION
    if is_free then
      vim.keymap.set(mode, key, function()
        require('alongside.reviews').next()
      end, { desc = KEY_DESCRIPTION })
    end
    has_key = has_key or mode == 'n' and is_free
  end
end

--- What to press or run to see a pending change.
---@return string
function M.hint()
  local keys = require('alongside').options().keys
  return has_key and keys and keys.review or ':AlongsideReview'
end

--- Whether a program is running in a terminal on the screen. That is where agents run.
---@return boolean
local function has_terminal()
  return vim.iter(vim.api.nvim_tabpage_list_wins(0)):any(function(window)
    local buffer = vim.bo[vim.api.nvim_win_get_buf(window)]
    return buffer.buftype == 'terminal' and vim.fn.jobwait({ buffer.channel }, 0)[1] == -1
  end)
end

---@return 'notify'|'view'|'focus'
local function how()
  local option = require('alongside').options().open
  if option == 'notify' or option == 'view' or option == 'focus' then
    return option
  end
  local is_quiet = not last_key or now() - last_key >= QUIET_MS
  return (is_quiet or has_terminal()) and 'view' or 'notify'
end

--- Whether a window that opens now would break what the user is doing: typing a command, answering a prompt, choosing a completion.
---@return boolean
local function is_busy()
  local mode = vim.fn.mode(1)
  return mode:match('^[cr!]') ~= nil
    or mode:match('^no') ~= nil
    or vim.fn.getcmdwintype() ~= ''
    or vim.fn.pumvisible() == 1
end

--- Calls `action` now, or as soon as the user has finished the command.
---@param action fun()
local function when_free(action)
  if not is_busy() then
    return action()
  end
  vim.api.nvim_create_autocmd({ 'ModeChanged', 'CmdwinLeave', 'CompleteDone' }, {
    once = true,
    callback = vim.schedule_wrap(function()
      when_free(action)
    end),
  })
end

---@param review alongside.Review
local function announce(review)
  require('alongside').notify(names.describe(review) .. '; review with ' .. M.hint())
end

--- Whether a change is pending and nothing else is shown.
---@param review alongside.Review
---@return boolean
local function is_next(review)
  local reviews = require('alongside.reviews')
  return reviews.is_pending(review.id) and not reviews.is_any_open() and not preview.id()
end

--- Shows a change to the side, or a notification if there is no room.
---@param review alongside.Review
local function show(review)
  bridge.request('review/get', { review = review.id }, function(error, full)
    if error or not is_next(review) then
      return
    end
    local title = names.describe(review) .. ' · ' .. M.hint()
    if not preview.open(full, names.buffer(review, 'diff'), title) then
      announce(review)
    end
    require('alongside.statusline').changed()
  end)
end

--- Shows a new change as the option says. Only one is shown at a time; the notice counts the others.
---@param review alongside.Review
function M.present(review)
  local wanted = how()
  if wanted == 'notify' or not is_next(review) then
    return announce(review)
  end
  when_free(function()
    if is_next(review) then
      if wanted == 'focus' then
        return require('alongside.reviews').open(review.id)
      end
      show(review)
    end
  end)
end

--- Shows the oldest change that the user has not closed, but never with the focus: a second `:w` must not accept it.
local function present_next()
  local oldest = vim.iter(require('alongside.reviews').pending()):find(function(review)
    return not preview.is_dismissed(review.id)
  end)
  if oldest and how() ~= 'notify' then
    when_free(function()
      if is_next(oldest) then
        show(oldest)
      end
    end)
  end
end

--- A change was edited or revised.
---@param id integer
function M.update(id)
  if preview.id() == id then
    bridge.request('review/get', { review = id }, function(error, review)
      if not error then
        preview.update(review)
      end
    end)
  end
end

--- A change was decided or withdrawn.
---@param id integer
function M.close(id)
  if preview.id() == id then
    preview.close()
  end
  present_next()
end

--- All pending changes were fetched again.
function M.refresh()
  local id = preview.id()
  if not id then
    present_next()
  elseif require('alongside.reviews').is_pending(id) then
    M.update(id)
  else
    M.close(id)
  end
end

return M
