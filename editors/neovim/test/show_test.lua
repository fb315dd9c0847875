-- Files that an agent wants to show.
local tests = {}

local function file(lines)
  local path = vim.fn.tempname() .. '.txt'
  vim.fn.writefile(lines, path)
  return path
end

function tests.file_is_shown_to_the_side_without_the_focus()
  local fake = require('fake_companion')
  local path = fake.open('a.txt', { 'one' })
  local hello = fake.params('hello')[1]
  assert(hello.opensFiles and hello.watch, vim.inspect(hello))
  local shown = file({ 'one', 'two', 'three' })
  fake.notify('file/show', { path = shown, line = 3 })
  assert(vim.api.nvim_buf_get_name(0) == path, 'the focus stays')
  local window = vim.fn.bufwinid(shown)
  assert(window > 0 and vim.api.nvim_win_get_cursor(window)[1] == 3)
  -- The next one, with a line that does not exist, in the same window.
  local next = file({ 'one' })
  fake.notify('file/show', { path = next, line = 9 })
  assert(vim.fn.bufwinid(next) == window and #vim.api.nvim_list_wins() == 2)
  assert(vim.bo[vim.fn.bufnr(next)].buflisted)
end

function tests.visible_file_is_not_opened_again()
  local fake = require('fake_companion')
  local path = fake.open('a.txt', { 'one', 'two' })
  fake.notify('file/show', { path = path, line = 2 })
  assert(#vim.api.nvim_list_wins() == 1)
  assert(vim.api.nvim_win_get_cursor(0)[1] == 1, 'the cursor of the user stays')
end

return tests
