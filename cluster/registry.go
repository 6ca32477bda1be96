package cluster

import cmap "github.com/orcaman/concurrent-map"

// The library keeps its processes in 1024 maps, and the package of those maps splits each into 32 shards. That makes
// 32,768 maps, nearly all of them empty, and 2.7 MiB of a new node. 1024 locks are enough, so each map gets one shard.
func init() { cmap.SHARD_COUNT = 1 }
