package cluster

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// BenchmarkRequest measures requests to an actor of this node: by the node's own function, and by the library's Cluster
// with the options of the program; and those to a hosted actor. Run them together, several times, and compare their
// medians.
func BenchmarkRequest(b *testing.B) {
	n := Solo(quietly())
	n.Register(Kind{Name: "counter", New: func() actor.Actor { return &counter{} }})
	hosts(n)
	defer n.Stop(context.Background())
	msg, ctx := wrapperspb.String(""), context.Background()
	for name, ask := range map[string]func(id string) error{
		"node": func(id string) error {
			_, err := n.request(settings{ctx: ctx, within: DefaultTimeout}, identity{"counter", id}, msg)
			return err
		},
		"hosted": func(id string) error {
			_, err := n.Cluster().Request("7/"+id, "tally", msg, Within(ctx), protoactor.WithTimeout(DefaultTimeout))
			return err
		},
		"library": func(id string) error {
			_, err := n.Cluster().Request(id, "counter", msg, Within(ctx), protoactor.WithTimeout(DefaultTimeout))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := ask("a"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
