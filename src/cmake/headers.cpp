// Nothing but the headers that the layers share, compiled once (see layer.cmake).
