package amount

import (
	"cmp"
	"fmt"
	"strconv"
)

// Sum is a sum of amounts: over·10¹⁸ + hi + lo·10⁻¹⁸. The parts over and hi have one sign, |hi| < 10¹⁸ and
// 0 ≤ lo < 10¹⁸, so a sum that is an amount has its columns. No sum of booked amounts overflows: that would take 10¹⁸
// of them. The zero value is 0, and == compares. It is safe for concurrent use.
type Sum struct {
	over, hi int64
	lo       uint64
}

func (a Amount) Sum() Sum { return Sum{0, a.hi, a.lo} }

// SumOf returns the sum of three columns; hi may have another sign than over. ErrRange if over or lo is out of range.
func SumOf(over, hi, lo int64) (Sum, error) {
	if over <= -one || over >= one || lo < 0 || lo >= one {
		return Sum{}, ErrRange
	}
	return carried(over, hi, uint64(lo)), nil
}

// carried brings over and hi into range and to one sign.
func carried(over, hi int64, lo uint64) Sum {
	over, hi = over+hi/one, hi%one
	switch {
	case over > 0 && hi < 0:
		over, hi = over-1, hi+one
	case over < 0 && hi > 0:
		over, hi = over+1, hi-one
	}
	return Sum{over, hi, lo}
}

// Parts returns the three columns of the sum.
func (s Sum) Parts() (over, hi, lo int64) { return s.over, s.hi, int64(s.lo) }

// Amount returns the sum as an amount. ErrRange.
func (s Sum) Amount() (Amount, error) {
	if s.over != 0 {
		return Amount{}, ErrRange
	}
	return Amount{s.hi, s.lo}, nil
}

func (s Sum) Add(o Sum) Sum {
	hi, lo := s.hi+o.hi, s.lo+o.lo // both fit: twice the bound is below 2⁶¹
	if lo >= one {
		hi, lo = hi+1, lo-one
	}
	return carried(s.over+o.over, hi, lo)
}

func (s Sum) Sub(o Sum) Sum { return s.Add(o.neg()) }

func (s Sum) neg() Sum {
	if s.lo == 0 {
		return Sum{-s.over, -s.hi, 0}
	}
	return carried(-s.over, -s.hi-1, one-s.lo)
}

// Sign returns -1, 0 or +1 if the sum is below, equal to or above zero.
func (s Sum) Sign() int {
	return cmp.Or(cmp.Compare(s.over, 0), cmp.Compare(s.hi, 0), cmp.Compare(s.lo, 0))
}

// String returns the sum in plain notation, without superfluous zeros and "-0".
func (s Sum) String() string {
	sign := ""
	if s.Sign() < 0 {
		sign, s = "-", s.neg()
	}
	text := Amount{s.hi, s.lo}.String()
	if s.over > 0 {
		low := Amount{0, s.lo}.String()
		text = strconv.FormatInt(s.over, 10) + fmt.Sprintf("%0*d", Decimals, s.hi) + low[1:]
	}
	return sign + text
}

// MarshalJSON writes a number in plain notation.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }
