-- Texts survive a buffer byte for byte.
local text = require('alongside.text')
local tests = {}

function tests.text_comes_back_as_it_was()
  local buffer = vim.api.nvim_create_buf(false, true)
  local bom = '\239\187\191'
  for _, content in ipairs({
    '',
    '\n',
    'a',
    'a\n',
    'a\n\n',
    'a\r\nb\r\n',
    'a\r\nb',
    'a\r\nb\n',
    '\r\n',
    'a\rb',
    bom,
    bom .. 'a\r\nb',
    'ü🦀\n',
    'a\r\r\nb\r\n',
  }) do
    text.put(buffer, content)
    assert(text.of(buffer) == content, vim.inspect(content))
    text.put(buffer, 'something\r\nelse\r\n')
    text.put(buffer, content)
    assert(text.of(buffer) == content, vim.inspect(content))
  end
end

function tests.truncation_keeps_whole_characters()
  for _, case in ipairs({
    { 'abc', 3, 'abc' },
    { 'abc', 2, 'ab' },
    { 'aüü', 4, 'aü' },
    { 'aüü', 3, 'aü' },
    { '🦀', 3, '' },
    { '🦀🦀', 7, '🦀' },
  }) do
    local cut = text.truncate(case[1], case[2])
    assert(cut == case[3], vim.inspect({ case, cut }))
  end
end

return tests
