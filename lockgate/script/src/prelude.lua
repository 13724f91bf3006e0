-- Functions of the library whose loops would not be counted, or that tell addresses.

local raw_tostring, raw_type, raw_getmetatable = tostring, type, getmetatable

function tostring(value)
  local kind = raw_type(value)
  if kind == "table" or kind == "function" or kind == "userdata" or kind == "thread" then
    local meta = kind == "table" and raw_getmetatable(value)
    if raw_type(meta) == "table" and meta.__tostring then
      return meta.__tostring(value)
    end
    return kind
  end
  return raw_tostring(value)
end

local raw_pcall, raw_settle = pcall, settle
settle = nil

function pcall(f, ...)
  return raw_settle(raw_pcall(f, ...))
end

function xpcall(f, handler)
  local answer = { raw_settle(raw_pcall(f)) }
  if answer[1] then
    return unpack(answer, 1, table.maxn(answer))
  end
  return false, handler(answer[2])
end

function table.insert(list, ...)
  local given, length = select("#", ...), #list
  if given == 1 then
    list[length + 1] = (...)
  elseif given == 2 then
    local at, value = ...
    for i = length, at, -1 do
      list[i + 1] = list[i]
    end
    list[at] = value
  else
    error("wrong number of arguments to 'insert'", 2)
  end
end

function table.remove(list, at)
  local length = #list
  at = at or length
  if at < 1 or at > length then
    return nil
  end
  local value = list[at]
  for i = at, length - 1 do
    list[i] = list[i + 1]
  end
  list[length] = nil
  return value
end

function table.sort(list, less)
  less = less or function(a, b) return a < b end
  local length, width, from, to = #list, 1, list, {}
  while width < length do
    for start = 1, length, 2 * width do
      local i, j = start, start + width
      local i_end, j_end = j, j + width
      if i_end > length + 1 then i_end = length + 1 end
      if j_end > length + 1 then j_end = length + 1 end
      for k = start, j_end - 1 do
        if i < i_end and (j >= j_end or not less(from[j], from[i])) then
          to[k] = from[i]
          i = i + 1
        else
          to[k] = from[j]
          j = j + 1
        end
      end
    end
    from, to = to, from
    width = width * 2
  end
  if from ~= list then
    for i = 1, length do
      list[i] = from[i]
    end
  end
end
