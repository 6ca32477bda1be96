package cluster

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Call sends a request by the library's Cluster, as the program does.
func (n *Node) Call(ctx context.Context, kind, id string, msg proto.Message) (proto.Message, error) {
	m, err := n.Cluster().Request(id, kind, msg, Within(ctx))
	if err != nil {
		return nil, err
	}
	return m.(proto.Message), nil
}

// Tell sends to the PID of an identity.
func (n *Node) Tell(kind, id string, msg proto.Message) {
	if pid := n.Cluster().Get(id, kind); pid != nil {
		n.sys.Root.Send(pid, msg)
	}
}
