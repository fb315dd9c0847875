-- Runs every test of this directory:
--   nvim --headless --clean --cmd "set runtimepath^=$PWD" -l test/run.lua
-- Prints the failures and exits with 1 if there are any.

local directory = vim.fs.dirname(vim.fs.abspath and vim.fs.abspath(arg[0]) or vim.fn.fnamemodify(arg[0], ':p'))
package.path = directory .. '/?.lua;' .. package.path
vim.cmd.runtime('plugin/alongside.lua')

local count, failures = 0, 0
for _, file in ipairs(vim.fn.sort(vim.fn.glob(directory .. '/*_test.lua', false, true))) do
  local tests = dofile(file)
  for _, name in ipairs(vim.fn.sort(vim.tbl_keys(tests))) do
    count = count + 1
    -- Modules keep state.
    for module in pairs(package.loaded) do
      if module == 'fake_companion' or module:match('^alongside') then
        package.loaded[module] = nil
      end
    end
    local ok, message = xpcall(tests[name], debug.traceback)
    if not ok then
      failures = failures + 1
      io.stdout:write(('%s: %s: %s\n'):format(vim.fs.basename(file), name, message))
    end
    require('alongside').stop()
    vim.wait(5000, require('alongside.context').is_reported, 5)
    vim.cmd('silent! %bwipeout!')
  end
end
io.stdout:write(('%d tests, %d failures\n'):format(count, failures))
os.exit(failures == 0 and count > 0 and 0 or 1)
