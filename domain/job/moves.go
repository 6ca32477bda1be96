package job

import "time"

// Moves return the next value of a job, which Save commits. They do not look at
// the clock: now is an argument.

// over is j in a state in which nothing is due any more.
func (j Job) over(s State, now time.Time) Job {
	j.State, j.NextAt, j.FinishedAt, j.Cancel = s, time.Time{}, now, false
	if s == Cancelled { // what it did not come to is skipped
		j.Skipped = max(j.Skipped, j.Total-j.Done-j.Failed-j.Unknown)
	}
	return j
}

// cancelled is j when a person wants it to end. While a step may be under way its
// owner ends it, so that the outcome of that step is counted.
func (j Job) cancelled(now time.Time) Job {
	switch j.State {
	case Queued, Paused:
		return j.over(Cancelled, now)
	case Running:
		j.Cancel, j.NextAt = true, now
	}
	return j
}

// resent is j, which is over, when n of its unknown items are new again. It begins
// with the first item that is new.
func (j Job) resent(n int64, now time.Time) Job {
	j.State, j.NextAt, j.BeatAt, j.FinishedAt = Queued, now, now, time.Time{}
	j.Attempts, j.Error = 0, ""
	if n > 0 {
		j.Cursor, j.Unknown = "0", j.Unknown-n
	}
	return j
}
