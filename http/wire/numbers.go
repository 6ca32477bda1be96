package wire

import "castellan/domain/money/transaction"

// Numbers are the client-visible numbers of statuses that the interface leaves open (D-TX-01, D-TX-02).
type Numbers struct{ FinalizedDeposit, HotWallet, TimeOut int }

func (n Numbers) Status(s transaction.Status) int {
	if s == transaction.FinalizedDeposit {
		return n.FinalizedDeposit
	}
	return int(s)
}

func (n Numbers) Queue(s transaction.QueueStatus) int {
	switch s {
	case transaction.HotWalletIsEmpty:
		return n.HotWallet
	case transaction.TimeOut:
		return n.TimeOut
	}
	return int(s)
}

// QueueStatus is the queue status of a client's number; 0, which no row has, for an unknown number.
func (n Numbers) QueueStatus(number int) transaction.QueueStatus {
	for s := transaction.QueueSuccess; s <= transaction.QueueCancelled; s++ {
		if n.Queue(s) == number {
			return s
		}
	}
	return 0
}
