// Package admin commits a record change together with its audit row and its note to the other nodes. The local copy
// follows the change before the call returns (decisions D-AUTH-01, D-EXT-03).
//
// The one idea: a slice says what it did (Done), and never how that is stored.
//
// Start reading at Changes.Do.
package admin

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
)

// Done says what a change did.
type Done struct {
	Target string         // the changed record; "" if nothing had to be changed
	Key    string         // key of the note; "" means Target
	Detail string         // short, human readable, without secrets and personal data
	UserID string         // the affected account; "" for none
	Writes []commit.Write // commit with the change, in addition to the writes of its store
}

func (d Done) key() string { return cmp.Or(d.Key, d.Target) }

// Changes applies the changes of one slice. It is safe for concurrent use.
type Changes struct {
	Commit commit.Committer
	Now    func() time.Time
	Topic  change.Topic                // of the note to the other nodes; "" if no node caches the records
	Lock   func(context.Context) error // begins every transaction; nil if changes need not wait for each other
	// Follow updates this node's cache for the keys of the note; nil if the node caches nothing.
	Follow func(ctx context.Context, keys ...string) error
}

// followTimeout bounds Changes.Follow.
const followTimeout = 5 * time.Second

// Do runs do in one transaction and commits its changes together with an audit row of the action and a note to the
// other nodes. Then this node's copy is updated. If do fails, nothing is written; if it reports that nothing had to be
// changed, neither row nor note is written.
//
// Errors: those of Lock, do and the commit, unchanged. An error of Follow is logged and is no failure, because the
// change is committed: this node learns of it from the note.
func (c Changes) Do(ctx context.Context, by audit.By, action string,
	do func(context.Context) (Done, error)) error {
	var done Done
	err := c.Commit.InTx(ctx, func(ctx context.Context) (err error) {
		if c.Lock != nil {
			if err := c.Lock(ctx); err != nil {
				return err
			}
		}
		if done, err = do(ctx); err != nil || done.Target == "" {
			return err
		}
		return c.Commit.Commit(ctx, c.writes(by, action, done)...)
	})
	if err != nil || c.Follow == nil || done.Target == "" {
		return err
	}
	// A new context is used for two reasons. A caller that has disconnected must not stop this node from applying the
	// change. Inside a wider transaction of the caller (D-2FA-28), which may still be rolled back, only committed data
	// may be read; in that case the note delivers the change.
	fresh, cancel := context.WithTimeout(context.Background(), followTimeout)
	defer cancel()
	if err := c.Follow(fresh, done.key()); err != nil {
		slog.Warn("a committed change is not in this node's copy yet; it follows from the feed", "topic", c.Topic, "err", err)
	}
	return nil
}

func (c Changes) writes(by audit.By, action string, d Done) []commit.Write {
	all := append(d.Writes, by.Did(audit.Record{
		At: c.Now(), UserID: d.UserID, Action: action, Target: d.Target, Detail: d.Detail}))
	if c.Topic != "" {
		all = append(all, change.Note{Topic: c.Topic, Key: d.key()})
	}
	return all
}

// Set sets a field to the sent value; nil leaves it unchanged.
func Set[T any](field, sent *T) {
	if sent != nil {
		*field = *sent
	}
}

// Differ names the exported fields in which two values of one struct type differ: an audit row names the changed fields
// and not their texts.
func Differ[T any](before, after T) string {
	var names []string
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range b.NumField() {
		if f := b.Type().Field(i); f.IsExported() && !reflect.DeepEqual(b.Field(i).Interface(), a.Field(i).Interface()) {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, " ")
}
