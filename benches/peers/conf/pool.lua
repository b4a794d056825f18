-- Requests for wrk, each sent once. The pool is records of one width, path, request id and signature, that are put into the request
-- that @DIR@/request has. It stays one string: a table of so many would keep the garbage collector busy.
local function read(name)
  local file = assert(io.open("@DIR@/" .. name, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local parts = {}
for part in (read("request") .. "\1"):gmatch("([^\1]*)\1") do parts[#parts + 1] = part end
local a, b, c, d = parts[1], parts[2], parts[3], parts[4]
local pool = read("pool")
local path, id, signature = @PATH@, 36, @SIGNATURE@
local width = path + id + signature
local sub, at, size = string.sub, 0, #pool

-- Milliseconds that a connection rests between requests, on average.
local rest = @REST@
if rest > 0 then
  function delay() return math.random(0, 2 * rest) end
end

function request()
  local begin = at
  at = (at + width) % size
  return a .. sub(pool, begin + 1, begin + path) .. b .. sub(pool, begin + path + 1, begin + path + id) .. c ..
         sub(pool, begin + path + id + 1, begin + width) .. d
end
