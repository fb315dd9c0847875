-- What is reported to agents.
local tests = {}

function tests.selection_over_the_limit_is_cut_between_characters_and_reported_once()
  local fake = require('fake_companion')
  -- One byte before, so that the limit is in the middle of a character.
  fake.open('a.txt', { 'a' .. ('ü'):rep(10000) })
  vim.cmd.normal({ 'ggVG', bang = true })
  fake.event('CursorMoved')
  fake.settle()
  fake.event('CursorMoved')
  fake.settle()
  vim.cmd.normal({ '\27', bang = true })
  local focus = fake.params('context/focus')
  assert(focus[#focus].selectedText == 'a' .. ('ü'):rep(8191), #focus[#focus].selectedText)
  assert(fake.has_notice('the selection is longer than 16 KiB') == 1, vim.inspect(fake.notices))
end

function tests.selection_of_many_lines_is_cut()
  local fake = require('fake_companion')
  fake.open('a.txt', vim.fn['repeat']({ '' }, 40000))
  vim.cmd.normal({ 'GVgg', bang = true })
  fake.event('CursorMoved')
  fake.settle()
  vim.cmd.normal({ '\27', bang = true })
  local focus = fake.params('context/focus')
  assert(focus[#focus].selectedText == ('\n'):rep(16 * 1024))
end

function tests.buffer_over_the_limit_is_reported_once_and_not_sent()
  local fake = require('fake_companion')
  local path = fake.open('large.txt', { 'text' })
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'small' })
  fake.event('TextChanged')
  fake.settle()
  assert(fake.params('context/buffer')[1].text == 'small\n')
  vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.fn['repeat']({ ('0123456789abcde'):rep(1024) }, 1100))
  for _ = 1, 2 do
    fake.event('BufWritePost')
    fake.settle()
  end
  local buffers = fake.params('context/buffer')
  assert(#buffers == 2 and buffers[2].path == path and buffers[2].text == nil, #buffers)
  assert(fake.has_notice('large.txt is larger than 16 MiB') == 1, vim.inspect(fake.notices))
end

function tests.focus_is_reported_even_if_a_terminal_follows_at_once()
  local fake = require('fake_companion')
  local first = fake.open('first.txt', { 'one', 'two' })
  fake.settle()
  vim.api.nvim_win_set_cursor(0, { 2, 1 })
  fake.event('CursorMoved')
  vim.cmd.new()
  vim.bo.buftype = 'nofile'
  fake.event('BufEnter')
  fake.settle()
  local focus = fake.params('context/focus')
  local last = focus[#focus]
  assert(last.path == first and last.cursor.line == 2 and last.cursor.character == 2, vim.inspect(last))
  assert(fake.received[#fake.received].method == 'window/focus')
end

function tests.closed_file_is_not_reported_as_focused()
  local fake = require('fake_companion')
  local path = fake.open('a.txt', { 'one' })
  fake.settle()
  fake.event('CursorMoved')
  vim.cmd.bwipeout({ bang = true })
  fake.settle()
  local is_closed = false
  for _, message in ipairs(fake.received) do
    is_closed = is_closed or message.method == 'context/close'
    assert(not (is_closed and message.method == 'context/focus' and message.params.path == path))
  end
  assert(is_closed)
end

return tests
