package engine

import (
	"context"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// The trace receives the writes of an interactive transaction in the same form as those of the writer.
func TestTraceOfInteractiveTransaction(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			var traced []string
			db := openWith(t, dsn, Options{Trace: func(_ context.Context, statement string) bool {
				traced = append(traced, statement)
				return false
			}})
			storetest.Must(t, db.Commit(t.Context(), addNote{ID: "a", Text: "old"}))
			traced = nil
			storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
				return db.Commit(ctx, renameNote{"a", "new"}, dropNote{"b"})
			}))
			want := []string{"BEGIN", "UPDATE note SET text = 'new' WHERE note.id = 'a'", "DELETE FROM note WHERE note.id = 'b'",
				"COMMIT"}
			storetest.Same(t, traced, want)
		})
	}
}
