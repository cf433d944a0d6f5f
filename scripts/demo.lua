-- SPDX-License-Identifier: MIT
-- The program of the demo: typical jobs of Lua programs, by turns.
--     lua demo.lua SECONDS        until that much time is over
--     lua demo.lua x ROUNDS       that many rounds of all jobs (for benchmarks: always the same work)
local seconds, rounds = tonumber(arg[1]), tonumber(arg[2])
local seed = 42
local function random(n)
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    return seed % n + 1
end

local words = {}
for i = 1, 400 do
    local letters = {}
    for k = 1, 2 + random(7) do letters[k] = string.char(96 + random(26)) end
    words[i] = table.concat(letters)
end

local jobs = {}

function jobs.sort()
    local list = {}
    for i = 1, 6000 do list[i] = random(1000000) end
    table.sort(list)
    table.sort(list, function(a, b) return a % 1000 < b % 1000 or (a % 1000 == b % 1000 and a < b) end)
    return list[1]
end

function jobs.text()
    local lines, count = {}, {}
    for i = 1, 400 do
        local line = {}
        for k = 1, 10 do line[k] = words[random(#words)] end
        lines[i] = table.concat(line, " ")
    end
    local text = table.concat(lines, "\n")
    for word in text:gmatch("%a+") do count[word] = (count[word] or 0) + 1 end
    local upper = text:gsub("%f[%a]%a", string.upper)
    return #upper + (count[words[1]] or 0) + #text:rep(3):reverse() + #string.format("%q", text)
end

function jobs.queens()
    local found, n, column, up, down = 0, 7, {}, {}, {}
    local function place(row)
        if row > n then found = found + 1 return end
        for c = 1, n do
            if not (column[c] or up[row + c] or down[row - c + n]) then
                column[c], up[row + c], down[row - c + n] = true, true, true
                place(row + 1)
                column[c], up[row + c], down[row - c + n] = nil, nil, nil
            end
        end
    end
    place(1)
    return found
end

function jobs.objects()
    local Point = {}
    Point.__index = Point
    Point.__add = function(a, b) return setmetatable({x = a.x + b.x, y = a.y + b.y}, Point) end
    Point.__eq = function(a, b) return a.x == b.x and a.y == b.y end
    local sum = setmetatable({x = 0, y = 0}, Point)
    for i = 1, 12000 do sum = sum + setmetatable({x = i, y = -i}, Point) end
    return sum == sum and sum.x
end

function jobs.coroutines()
    local function numbers(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end
    local sum = 0
    for i in numbers(10000) do sum = sum + i end
    return sum
end

function jobs.errors() -- each error leaves C functions by longjmp
    local caught = 0
    for i = 1, 3000 do
        local ok = pcall(function() if i % 2 == 0 then error({code = i}) end return ("x"):rep(i % 50) end)
        if not ok then caught = caught + 1 end
    end
    return caught
end

local order = {"sort", "text", "queens", "objects", "coroutines", "errors"}
local done, from, check = 0, os.time(), 0
repeat
    for _, name in ipairs(order) do check = check + jobs[name]() end
    done = done + 1
until rounds and done >= rounds or not rounds and os.time() - from >= seconds
print(string.format("%d rounds of %d jobs, check %d", done, #order, check))
