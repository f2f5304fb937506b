"""The compiled part of a ledger: what each event does to the statistics, and which arms would be chosen.

`make_kernel` makes the kernel of a policy; `KernelState` is what it works on. `Pending` holds the
decisions whose window is not over. Only `accrual.live` uses this.
"""

from accrual.live.kernels.arrays import BATCH as BATCH
from accrual.live.kernels.arrays import CHOOSE as CHOOSE
from accrual.live.kernels.arrays import LOST as LOST
from accrual.live.kernels.arrays import OF_ARM as OF_ARM
from accrual.live.kernels.arrays import OVER as OVER
from accrual.live.kernels.arrays import RECENT as RECENT
from accrual.live.kernels.arrays import KernelState as KernelState
from accrual.live.kernels.arrays import Rules as Rules
from accrual.live.kernels.folding import DECIDE as DECIDE
from accrual.live.kernels.folding import EXAMPLES as EXAMPLES
from accrual.live.kernels.folding import FOLD as FOLD
from accrual.live.kernels.folding import LEARN as LEARN
from accrual.live.kernels.folding import NO_ROOM as NO_ROOM
from accrual.live.kernels.folding import TRY as TRY
from accrual.live.kernels.folding import make_kernel as make_kernel
from accrual.live.kernels.pending import CLOSED as CLOSED
from accrual.live.kernels.pending import FIRST as FIRST
from accrual.live.kernels.pending import LATE as LATE
from accrual.live.kernels.pending import NEXT as NEXT
from accrual.live.kernels.pending import OLDEST as OLDEST
from accrual.live.kernels.pending import RINGS as RINGS
from accrual.live.kernels.pending import SHUT as SHUT
from accrual.live.kernels.pending import USED as USED
from accrual.live.kernels.pending import OpenSums as OpenSums
from accrual.live.kernels.pending import Pending as Pending
from accrual.live.kernels.pending import Queues as Queues
from accrual.live.kernels.pending import close as close
from accrual.live.kernels.pending import no_trial_pending as no_trial_pending
from accrual.live.kernels.pending import none_pending as none_pending
from accrual.live.kernels.pending import with_arms as with_arms
from accrual.live.kernels.pending import with_room as with_room
