package user

// Rejected is a value of kycConfirm and addressConfirmed, like those of directory.go.
const Rejected = "rejected"

// SetKYC writes the decision on the identity of an account's owner. Use it with Store.Hold.
type SetKYC struct{ UserID, KYCConfirm string }

func (SetKYC) Table() string { return "users" }

func (w SetKYC) Row() string { return w.UserID }

// SetAddressConfirmed writes the decision on an account's address. Use it with Store.Hold.
type SetAddressConfirmed struct{ UserID, AddressConfirmed string }

func (SetAddressConfirmed) Table() string { return "users" }

func (w SetAddressConfirmed) Row() string { return w.UserID }

// SetPerson writes the person that an account belongs to. Use it with Store.Hold.
type SetPerson struct {
	UserID, Name, Surname string
	IdentityHash          string
	BirthDate             string // YYYY-MM-DD
}

func (SetPerson) Table() string { return "users" }

func (w SetPerson) Row() string { return w.UserID }

// FullName returns the name for display.
func (w SetPerson) FullName() string { return User{Name: w.Name, Surname: w.Surname}.FullName() }
