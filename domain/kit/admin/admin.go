// Package admin owns how one change of a record happens: the change, its audit
// row and the note to the other nodes commit together, and this node works with
// the change before the call returns (decisions D-AUTH-01, D-EXT-03).
//
// The one idea: a slice says what it did (Done), and never how that is kept.
//
// Start reading at Changes.Do.
package admin

import (
	"cmp"
	"context"
	"reflect"
	"strings"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
)

// Done says what a change did.
type Done struct {
	Target string         // the record concerned; "" where nothing had to be changed
	Key    string         // what the note says has changed; Target where it is ""
	Detail string         // short, human readable, without secrets and personal data
	UserID string         // the account concerned; "" for none
	Writes []commit.Write // that commit with the change, beside what its store wrote
}

func (d Done) key() string { return cmp.Or(d.Key, d.Target) }

// Changes carries out the changes of one slice. It is safe for concurrent use.
type Changes struct {
	Commit commit.Committer
	Now    func() time.Time
	Topic  change.Topic                // tells the other nodes; "" where no node caches the records
	Lock   func(context.Context) error // begins every transaction; nil where changes need not wait for each other
	// Follow has this node read what changed under the key of the note; nil where
	// it caches nothing.
	Follow func(ctx context.Context, keys ...string) error
}

// followTimeout bounds Changes.Follow.
const followTimeout = 5 * time.Second

// Do runs do in one transaction and commits its changes together with an audit
// row of the action and a note to the other nodes. Then this node's copy follows
// the change. Where do fails nothing is written; where it says
// that nothing had to be changed, there is neither row nor note.
//
// Errors: those of Lock, do, the commit and Follow, unchanged. After an error of
// Follow the change is committed: this node learns of it by the note.
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
	// The context is a new one, for two reasons. A caller who has gone away must
	// not keep this node from working with the change. And inside a wider
	// transaction of the caller (D-2FA-28), which may yet be rolled back, only
	// what is committed may be read; there the note brings the change.
	fresh, cancel := context.WithTimeout(context.Background(), followTimeout)
	defer cancel()
	return c.Follow(fresh, done.key())
}

func (c Changes) writes(by audit.By, action string, d Done) []commit.Write {
	all := append(d.Writes, by.Did(audit.Record{
		At: c.Now(), UserID: d.UserID, Action: action, Target: d.Target, Detail: d.Detail}))
	if c.Topic != "" {
		all = append(all, change.Note{Topic: c.Topic, Key: d.key()})
	}
	return all
}

// Differ names the exported fields of two values of one struct type that differ:
// what an audit row tells of a change without its texts.
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
