/*
 * Times of single kernels by events on the stream. The time of a launch is the time between the
 * event before it and the event after it, so it includes the latency of the launch.
 */
#include "engine/cuda/cuda_device.h"

bool cuda_profile_open(struct cuda_device *dev, struct bn_error *err)
{
    struct cuda_driver *d = &dev->driver;
    for (size_t i = 0; i <= PROFILE_EVENTS; i++)
        if (!cuda_ok(d, d->cuEventCreate(&dev->profile.events[i], CU_EVENT_DEFAULT),
                     "creating an event", err))
            return false;
    dev->dependent_launch = false;
    dev->profile.on = true;
    return true;
}

void cuda_profile_close(struct cuda_device *dev)
{
    for (size_t i = 0; i <= PROFILE_EVENTS; i++)
        if (dev->profile.events[i])
            (void)dev->driver.cuEventDestroy(dev->profile.events[i]); /* as in cuda_device_close */
}

void cuda_profile_before(struct cuda_device *dev)
{
    struct cuda_profile *p = &dev->profile;
    if (p->n == PROFILE_EVENTS) { /* all events are in use: read their times first */
        cuda_record_error(dev, dev->driver.cuStreamSynchronize(dev->stream), "computing");
        cuda_profile_read(dev);
    }
    if (p->n == 0)
        cuda_record_error(dev, dev->driver.cuEventRecord(p->events[0], dev->stream),
                          "recording an event");
}

void cuda_profile_after(struct cuda_device *dev, enum cuda_kernel k)
{
    struct cuda_profile *p = &dev->profile;
    p->kernels[p->n++] = k;
    cuda_record_error(dev, dev->driver.cuEventRecord(p->events[p->n], dev->stream),
                      "recording an event");
}

void cuda_profile_read(struct cuda_device *dev)
{
    struct cuda_profile *p = &dev->profile;
    for (size_t i = 0; i < p->n; i++) {
        float ms = 0;
        if (dev->driver.cuEventElapsedTime(&ms, p->events[i], p->events[i + 1]) == CUDA_SUCCESS)
            p->seconds[p->kernels[i]] += (double)ms / 1e3;
        p->n_calls[p->kernels[i]]++;
    }
    p->n = 0;
}
