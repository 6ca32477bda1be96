package cluster

import (
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
)

// This file connects a node to protoactor's Cluster: it implements the library's cluster provider and identity lookup.
// request.go has its requests, pid.go its PIDs and supervisor.go its supervision. The library's StartMember is never
// called. It would listen with the stock remote, which cannot distinguish a message that was never sent from one whose
// answer was lost.

// Cluster returns the actor library's view of this node. Its Request, RequestFuture and Get reach every virtual actor.
// Config.Kinds has the kinds, MemberList the members, and the event stream receives a ClusterTopology when the members
// change. The functions of the event stream must not block. Start, Leave and Stop of the node start and stop it.
func (n *Node) Cluster() *protoactor.Cluster { return n.library }

// newLibrary creates the library's cluster over n.
func newLibrary(n *Node) *protoactor.Cluster {
	n.provider = &provider{n: n}
	config := protoactor.Configure("castellan", n.provider, lookup{n}, remote.Configure("", 0),
		protoactor.WithRequestTimeout(DefaultTimeout),
		protoactor.WithClusterContextProducer(func(*protoactor.Cluster) protoactor.Context { return newCaller(n) }))
	c := protoactor.New(n.sys, config)
	c.IdentityLookup = config.IdentityLookup // StartMember would do it
	n.sys.ProcessRegistry.RegisterAddressResolver(n.resolve)
	n.sys.Root.WithGuardian(&supervisor{n})
	return c
}

// errNoClient: every process is a full member of its cluster.
var errNoClient = errors.New("cluster: a node is always a member; there are no clients")

// provider reports the members to the library. It implements protoactor.ClusterProvider over the gossip of memberlist
// and the links, because gossip alone does not make a member reachable.
type provider struct {
	n    *Node
	told map[string]Member // the members last reported to the library
}

// StartMember joins the other members and reports them from then on.
func (p *provider) StartMember(*protoactor.Cluster) error {
	if p.n.membership == nil {
		p.publishMembers(map[string]Member{p.n.sys.ID: {ID: p.n.sys.ID, Address: aloneAddress}})
		return nil
	}
	return p.n.membership.start()
}

// StartClient refuses: there are no clients.
func (p *provider) StartClient(*protoactor.Cluster) error { return errNoClient }

// Shutdown does nothing: Leave and Stop of the node do its work.
func (p *provider) Shutdown(bool) error { return nil }

// publishMembers passes the current members to the library's list, which publishes the changes. Only one goroutine
// calls it.
func (p *provider) publishMembers(known map[string]Member) {
	if maps.EqualFunc(p.told, known, func(a, b Member) bool { return a.ID == b.ID }) {
		return
	}
	p.told = maps.Clone(known)
	kinds := slices.Sorted(maps.Keys(p.n.kinds)) // every member runs the same program
	var members protoactor.Members
	for id, m := range known {
		host, text, err := net.SplitHostPort(m.Address)
		port, notNumber := strconv.ParseInt(text, 10, 32)
		if err != nil || notNumber != nil {
			p.n.log.Warn("cluster: a member's address is not host:port", "address", m.Address)
			continue
		}
		members = append(members, &protoactor.Member{Id: id, Host: host, Port: int32(port), Kinds: kinds})
	}
	c := p.n.library
	// The list keeps each member that left in a block list of the remote for ever. Here a member may come back after a
	// network split, so the list is replaced each time.
	c.Remote = remote.NewRemote(p.n.sys, c.Config.RemoteConfig)
	c.MemberList.UpdateClusterTopology(members)
}

// lookup finds the member that owns an identity. It implements protoactor.IdentityLookup over the ring and the lease.
type lookup struct{ n *Node }

// Get returns the PID of the virtual actor at the member that owns it. It is nil if there is no owner, or if this node
// is the owner without a lease. The first message activates the actor. A PID stays valid when the actor is passivated,
// activated or moved.
func (l lookup) Get(ci *protoactor.ClusterIdentity) *actor.PID {
	n := l.n
	if n.kinds[ci.Kind] == nil || n.closed.Load() {
		return nil
	}
	address := aloneAddress
	if ms := n.membership; ms != nil {
		o := ms.owner(identity{ci.Kind, ci.Identity})
		if o == nil || o.ID == ms.self.ID && !ms.holdsLease() {
			return nil
		}
		address = o.Address
	}
	return actor.NewPID(address, ci.AsKey())
}

// RemovePid does nothing: a PID names an identity, not an activation.
func (lookup) RemovePid(*protoactor.ClusterIdentity, *actor.PID) {}

// Setup does nothing: the ring belongs to the node.
func (lookup) Setup(*protoactor.Cluster, []string, bool) {}

// Shutdown does nothing: Stop of the node ends the activations.
func (lookup) Shutdown() {}

// newKind converts one of our kinds to the library's. Its middleware sends a new activation its identity (ClusterInit),
// and publishes the end of an activation on the event stream.
func (n *Node) newKind(k Kind) *kind {
	props := actor.PropsFromProducer(func() actor.Actor { return &activation{node: n, make: k.New} },
		actor.WithMailbox(actor.UnboundedLockfree()), actor.WithDispatcher(n.work),
		actor.WithOnInit(func(ctx actor.Context) {
			key := identityOf(ctx.Self())
			protoactor.SetClusterIdentity(ctx, protoactor.NewClusterIdentity(key.id, key.kind))
		}))
	made := protoactor.NewKind(k.Name, props)
	n.library.Config.Kinds[k.Name] = made
	return &kind{Kind: made, rows: k.Rows, host: k.Host, shards: k.Shards}
}

// nameOf returns the name of a new activation: its identity and a number, "kind/id$number". No other actor has such a
// name.
func (n *Node) nameOf(key identity) string {
	return key.kind + "/" + key.id + n.sys.ProcessRegistry.NextId()
}

// identityOf parses the name of an activation.
func identityOf(pid *actor.PID) identity {
	name := pid.Id
	if i := strings.LastIndexByte(name, '$'); i >= 0 {
		name = name[:i]
	}
	kind, id, _ := strings.Cut(name, "/")
	return identity{kind, id}
}
