package user

// Rejected is the value of kycConfirm and addressConfirmed beside those of directory.go.
const Rejected = "rejected"

// SetKYC writes the decision on who an account belongs to. It goes with Store.Hold.
type SetKYC struct{ UserID, KYCConfirm string }

func (SetKYC) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetKYC) Row() string { return w.UserID }

// SetAddressConfirmed writes the decision on an account's address. It goes with Store.Hold.
type SetAddressConfirmed struct{ UserID, AddressConfirmed string }

func (SetAddressConfirmed) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetAddressConfirmed) Row() string { return w.UserID }

// SetPerson writes who an account belongs to. It goes with Store.Hold.
type SetPerson struct {
	UserID, Name, Surname string
	IdentityHash          string
	BirthDate             string // YYYY-MM-DD
}

func (SetPerson) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetPerson) Row() string { return w.UserID }

// FullName is the name as it is shown.
func (w SetPerson) FullName() string { return User{Name: w.Name, Surname: w.Surname}.FullName() }
