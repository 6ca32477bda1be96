// Package witness finds out through the database which nodes are there during a network split (docs/architecture.md,
// section 5.4).
//
// Start reading at Witness.
package witness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"castellan/cluster"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
)

// Witness lets nodes that do not hear each other find out through the database which nodes are there. One node writes a
// question into the change feed; each node that does not hear it answers there with its component.
type Witness struct {
	commit commit.Committer
	node   *cluster.Node
	mu     sync.Mutex
	asked  map[string]chan cluster.Component
}

// witnessTimeout is how long answers are awaited: every node reads the feed several times within it.
const witnessTimeout = 1500 * time.Millisecond

// ownQuestion marks the node's own question in the feed.
var ownQuestion = cluster.Component{Members: -1}

// New returns the witness of a node, which writes to the change feed by c.
func New(c commit.Committer, n *cluster.Node) *Witness {
	return &Witness{commit: c, node: n, asked: map[string]chan cluster.Component{}}
}

// Ask is the function for cluster.Node.OnNetworkSplit.
func (w *Witness) Ask(ctx context.Context, component cluster.Component) (outranked bool, err error) {
	question, answers := rand.Text(), make(chan cluster.Component, 64)
	w.mu.Lock()
	w.asked[question] = answers
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.asked, question)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*witnessTimeout)
	defer cancel()
	kind := "who"
	if component.Members == 0 { // it met no member; every node there answers, also one that hears this node
		kind = "new"
	}
	key := kind + "/" + question + "/" + w.node.Address()
	if err := w.commit.Commit(ctx, change.Note{Topic: change.Cluster, Key: key}); err != nil {
		return false, err
	}
	over := time.After(witnessTimeout)
	heard := false
	for {
		select {
		case c := <-answers:
			if c == ownQuestion { // the node's own question: the feed is read
				heard = true
			} else if c.Outranks(component) {
				return true, nil
			}
		case <-over:
			if !heard {
				return false, errors.New("the change feed is not read")
			}
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Apply handles the notes of the feed. Repeated old notes have no effect.
func (w *Witness) Apply(ctx context.Context, key string) error {
	kind, rest, _ := strings.Cut(key, "/")
	question, rest, _ := strings.Cut(rest, "/")
	switch kind {
	case "who", "new":
		if rest == w.node.Address() {
			w.deliver(question, ownQuestion)
			return nil
		}
		component, hears := w.node.Component()
		if kind == "who" && hears(rest) {
			return nil
		}
		go func() { // the feed must not wait; a node without an answer asks again
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), witnessTimeout)
			defer cancel()
			key := fmt.Sprintf("here/%s/%d/%s", question, component.Members, component.Least)
			_ = w.commit.Commit(ctx, change.Note{Topic: change.Cluster, Key: key})
		}()
	case "here":
		count, least, _ := strings.Cut(rest, "/")
		if n, err := strconv.Atoi(count); err == nil && n >= 0 {
			w.deliver(question, cluster.Component{Members: n, Least: least})
		}
	}
	return nil
}

func (w *Witness) deliver(question string, c cluster.Component) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.asked[question] <- c: // a nil channel, of an unknown question, is never ready
	default:
	}
}
