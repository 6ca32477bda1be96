package persistence

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/job"
	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
)

// Ended counts what a restore has ended, and what it has kept and an operator must know.
type Ended struct {
	Sessions, Challenges, Remembered, Resets, Messages int64
	Withdrawals                                        int64 // entries of the queue that wait to be compared
	Jobs                                               int64 // unfinished jobs, which continue
}

// eventsGap is the number of positions of events that a restore skips. The events of all time before it were fewer.
const eventsGap = 1 << 40

// Invalidate ends everything in a restored database that must not live on (D-EXT-17): sessions, open challenges with
// their codes, remembered browsers, password resets, unsent messages of challenges. Attempt budgets are kept. Every
// entry of the queue of withdrawals that is not final or sent waits for the comparison with the wallet. The cursors of
// events after eventsAfter are refused from now on. Call it in a transaction, together with the audit row of restoreID;
// no other process may use the database.
func Invalidate(ctx context.Context, db *DB, restoreID string, point time.Time, eventsAfter int64) (e Ended,
	err error) {
	now := engine.Millis(db.Now())
	tx := db.Conn(ctx)
	run := func(count *int64, statement string, args ...any) {
		if err != nil {
			return
		}
		result, failed := tx.NewRaw(statement, args...).Exec(ctx)
		if err = engine.Translate(failed); err == nil && count != nil {
			*count, err = result.RowsAffected()
		}
	}
	run(&e.Sessions, "UPDATE session SET ended_at = ? WHERE ended_at = 0", now) // also expired ones: clocks differ
	run(&e.Challenges, "UPDATE challenge SET state = ?, version = version + 1 WHERE state IN (?, ?)",
		int(challenge.Closed), int(challenge.Pending), int(challenge.Executing))
	run(nil, "DELETE FROM outcome")
	run(&e.Remembered, "DELETE FROM remembered")
	run(&e.Resets, "DELETE FROM reset_token")
	run(&e.Messages, "DELETE FROM outbox WHERE state = 0 AND challenge_id <> ''")

	waiting, processing := int(transaction.QueueWaiting), int(transaction.QueueProcessing)
	run(&e.Withdrawals, "INSERT INTO restore_withdrawal (id, status, outcome, settled_at) SELECT id, status, '', 0 "+
		"FROM withdrawal_queue WHERE status BETWEEN ? AND ? "+
		"ON CONFLICT (id) DO UPDATE SET status = excluded.status, outcome = '', settled_at = 0", waiting, processing)
	run(nil, "UPDATE withdrawal_queue SET status = ?, version = version + 1 WHERE status BETWEEN ? AND ?", waiting,
		waiting+1, processing)

	var offset int64
	from := eventsAfter + eventsGap
	run(nil, "UPDATE integration_event SET tx = tx + ? WHERE tx > ?", int64(eventsGap), eventsAfter)
	if err == nil && db.Postgres() {
		err = engine.Translate(tx.NewRaw("SELECT GREATEST(?, MAX(tx)) FROM integration_event", from).Scan(ctx, &offset))
		run(nil, fmt.Sprintf("ALTER TABLE integration_event ALTER COLUMN tx SET DEFAULT "+
			"(pg_current_xact_id()::text::bigint + %d)", offset))
	} else {
		run(nil, "DELETE FROM sqlite_sequence WHERE name = 'integration_event'")
		run(nil, "INSERT INTO sqlite_sequence (name, seq) SELECT 'integration_event', MAX(?, COALESCE(MAX(tx), 0)) "+
			"FROM integration_event", from)
	}
	run(nil, "INSERT INTO restore (id, point, restored_at, events_after, events_from, events_offset, finished_at) "+
		"VALUES (?, ?, ?, ?, ?, ?, 0)", restoreID, engine.Millis(point), now, eventsAfter, from, offset)
	if err == nil {
		err = engine.Translate(tx.NewRaw("SELECT COUNT(*) FROM job WHERE state IN (?, ?, ?)", string(job.Queued),
			string(job.Running), string(job.Paused)).Scan(ctx, &e.Jobs))
	}
	return e, err
}

// LastEvent returns the last position of an event that a reader of this database can have seen.
func LastEvent(ctx context.Context, db *DB) (int64, error) {
	h, err := headsOf(ctx, db.Postgres(), db.Texts)
	return h.EventsAfter, err
}
