package app

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
	"castellan/domain/change"
	"castellan/domain/commit"
)

// roll lets nodes that do not hear each other find out by the database who is
// there: one writes a question into the change feed, and whoever does not hear the
// asker answers there with the side that he belongs to.
type roll struct {
	commit commit.Committer
	node   *cluster.Node
	mu     sync.Mutex
	asked  map[string]chan cluster.Side
}

// rollTime is how long answers are waited for: every node reads the feed several
// times in it.
const rollTime = 1500 * time.Millisecond

func newRoll(c commit.Committer, n *cluster.Node) *roll {
	return &roll{commit: c, node: n, asked: map[string]chan cluster.Side{}}
}

// ask implements what cluster.Node.OnApart wants.
func (r *roll) ask(ctx context.Context, side cluster.Side) (others bool, err error) {
	question, answers := rand.Text(), make(chan cluster.Side, 64)
	r.mu.Lock()
	r.asked[question] = answers
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.asked, question)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*rollTime)
	defer cancel()
	if err := r.commit.Commit(ctx, change.Note{Topic: change.Cluster, Key: "who/" + question + "/" + r.node.Address()}); err != nil {
		return false, err
	}
	over := time.After(rollTime)
	heard := false
	for {
		select {
		case s := <-answers:
			if s.Members == 0 { // its own question came by: the feed is read
				heard = true
			} else if s.Before(side) {
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

// apply is told of the notes. Old ones may come again, and mean nothing then.
func (r *roll) apply(ctx context.Context, key string) error {
	kind, rest, _ := strings.Cut(key, "/")
	question, rest, _ := strings.Cut(rest, "/")
	switch kind {
	case "who":
		if rest == r.node.Address() {
			r.tell(question, cluster.Side{})
			return nil
		}
		side, hears := r.node.Side()
		if hears(rest) {
			return nil
		}
		go func() { // the feed waits for nobody; one who is not answered asks again
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollTime)
			defer cancel()
			_ = r.commit.Commit(ctx, change.Note{Topic: change.Cluster, Key: fmt.Sprintf("here/%s/%d/%s", question, side.Members, side.Least)})
		}()
	case "here":
		count, least, _ := strings.Cut(rest, "/")
		if n, err := strconv.Atoi(count); err == nil && n > 0 {
			r.tell(question, cluster.Side{Members: n, Least: least})
		}
	}
	return nil
}

func (r *roll) tell(question string, s cluster.Side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.asked[question] <- s: // nobody's is nil, and never ready
	default:
	}
}
