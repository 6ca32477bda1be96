package job

import "time"

// Moves return the next value of a job, which Save commits. They do not read the clock: now is an argument.

// MaxAttempts is how often a step is tried before its job fails.
const MaxAttempts = 5

// pauseAfter is how long a job waits after n failed attempts of a step: 1, 4, 16
// and 64 s.
func pauseAfter(n int) time.Duration { return time.Second << (2 * (n - 1)) }

// begun returns j as running.
func (j Job) begun(now time.Time) Job {
	if j.StartedAt.IsZero() {
		j.StartedAt = now
	}
	j.State, j.NextAt, j.BeatAt = Running, now, now
	return j
}

// stepped returns j after a step that returned next.
func (j Job) stepped(next Job, now time.Time) Job {
	j = j.begun(now)
	j.Cursor, j.Total, j.Counts, j.Result = next.Cursor, next.Total, next.Counts, next.Result
	j.Failures = next.Failures
	j.Attempts, j.Error = 0, ""
	switch {
	case j.Cancel:
		return j.ended(Cancelled, now)
	case next.State == Done:
		return j.ended(Done, now)
	case next.Rest > 0:
		j.State, j.NextAt = Paused, now.Add(next.Rest)
	}
	return j
}

// afterFailure returns j after a failed attempt.
func (j Job) afterFailure(why string, now time.Time) Job {
	j = j.begun(now)
	j.Attempts++
	j.Error = why
	switch {
	case j.Cancel:
		return j.ended(Cancelled, now)
	case j.Attempts >= MaxAttempts:
		return j.ended(Failed, now)
	}
	j.State, j.NextAt = Paused, now.Add(pauseAfter(j.Attempts))
	return j
}

// ended returns j in a final state, with nothing due.
func (j Job) ended(s State, now time.Time) Job {
	j.State, j.NextAt, j.FinishedAt, j.Cancel = s, time.Time{}, now, false
	if s == Cancelled { // items that were not reached are skipped
		j.Skipped = max(j.Skipped, j.Total-j.Done-j.Failed-j.Unknown)
	}
	return j
}

// cancelled returns j after a user cancelled it. If a step may be running, its owner ends the job, so that the outcome
// of that step is counted.
func (j Job) cancelled(now time.Time) Job {
	switch j.State {
	case Queued, Paused:
		return j.ended(Cancelled, now)
	case Running:
		j.Cancel, j.NextAt = true, now
	}
	return j
}

// resent returns j, which is over, after n of its unknown items became new again. It begins with the first new item.
func (j Job) resent(n int64, now time.Time) Job {
	j.State, j.NextAt, j.BeatAt, j.FinishedAt = Queued, now, now, time.Time{}
	j.Attempts, j.Error = 0, ""
	if n > 0 {
		j.Cursor, j.Unknown = "0", j.Unknown-n
	}
	return j
}
